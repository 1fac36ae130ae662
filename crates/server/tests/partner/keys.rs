//! Keys rotate while messages are on their way, and either suite will do.

use std::sync::Arc;

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_payment::partner_key::{NewKey, add, list, retire};
use counterfoil_payment::partner_push::KeyReference;
use counterfoil_protocol::{PartnerId, UserId};
use counterfoil_server::api::partner::PartnerSimulator;

use crate::house::{House, Vault, key};

/// A house whose partners hold these keys.
async fn holding(app: &TestApp, keys: Vec<KeyReference>) -> House {
    let partners = PartnerSimulator::new(app.db.clone(), Arc::new(Vault)).with_keys(keys);
    House::with(app, partners).await
}

async fn own_keys(app: &TestApp, n: i64, keys: &[(&str, &str)], current: &str) {
    app.execute(&format!("DELETE FROM partner_key WHERE partner_id = {n}")).await;
    for (name, when) in keys {
        app.execute(&format!(
            "INSERT INTO partner_key
               (partner_id, key_id, signing_secret_ref, encryption_key_ref, valid_from,
                retired_time)
             VALUES ({n}, '{name}', 'sign:{name}', 'seal:{name}', {when})"
        ))
        .await;
    }
    app.execute(&format!("UPDATE sys_partner SET key_id = '{current}' WHERE id = {n}")).await;
}

const EVER: &str = "NULL, NULL";
const RETIRED: &str = "NULL, '2026-09-08 02:00:00'";
const LATER: &str = "'2026-09-09 02:00:00', NULL";

on_every_database! {
    async fn while_keys_rotate_either_side_may_be_first(app: TestApp) {
        let (old, new) = (key("old", "jose"), key("new", "jose"));
        let both = holding(&app, vec![new.clone(), old.clone()]).await;
        // Partners that know both: we have the old one, then both, then the new one.
        both.approved(1, "never").await;
        own_keys(&app, 1, &[("old", EVER), ("new", LATER)], "new").await;
        both.approved(2, "never").await;
        own_keys(&app, 2, &[("old", EVER), ("new", EVER)], "new").await;
        both.approved(3, "never").await;
        own_keys(&app, 3, &[("old", RETIRED), ("new", EVER)], "new").await;
        assert_eq!(both.round().await.succeeded, 3);
        // A partner that has the new one only, or the old one only, while we have both.
        let ahead = holding(&app, vec![new]).await;
        ahead.approved(4, "never").await;
        own_keys(&app, 4, &[("old", EVER), ("new", EVER)], "new").await;
        assert_eq!(ahead.round().await.succeeded, 1);
        let behind = holding(&app, vec![old]).await;
        behind.approved(5, "never").await;
        own_keys(&app, 5, &[("old", EVER), ("new", EVER)], "old").await;
        assert_eq!(behind.round().await.succeeded, 1);
    }

    async fn a_partner_that_knows_none_of_our_keys_refuses(app: TestApp) {
        let house = holding(&app, vec![key("x", "jose")]).await;
        house.approved(1, "definite").await;
        assert_eq!(house.round().await.failed, 1);
        assert_eq!(house.chunks(1).await, "FAIL|1");
        assert!(house.message(1).await.contains("partner-message-untrusted"));
    }

    async fn a_partner_of_the_national_suite_is_told_under_sm4_and_sm3(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        app.execute("UPDATE partner_key SET suite = 'gm', encryption_key_ref = 'sm4:k'").await;
        assert_eq!(house.round().await.succeeded, 1);
        assert_eq!(house.received(1).await, "1");
    }

    async fn a_key_is_added_by_where_its_secrets_are_and_retired_in_time(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        let new = |key_id: &str, signing: &str, suite: &str| NewKey {
            partner: PartnerId(1),
            key_id: key_id.into(),
            suite: suite.into(),
            signing: signing.into(),
            encryption: "file:/run/keys/seal".into(),
            valid_from: None,
        };
        let refused = async |key: NewKey| {
            let error = add(&app.db, &key, UserId(7)).await.expect_err("refused");
            assert_eq!(error.code(), "invalid-input");
            error.to_string()
        };
        assert!(refused(new("k", "env:A", "jose")).await.contains("has a key k already"));
        assert!(refused(new("n 1", "env:A", "jose")).await.starts_with("key: "));
        assert!(refused(new("n", "env:A", "rot13")).await.starts_with("suite: "));
        let said = refused(new("n", "whsec_c2VjcmV0", "jose")).await;
        assert!(!said.contains("c2VjcmV0"), "{said}");
        let elsewhere = NewKey { partner: PartnerId(9), ..new("n", "env:A", "jose") };
        assert!(refused(elsewhere).await.contains("no partner 9"));
        add(&app.db, &new("n", "env:A", "gm"), UserId(7)).await.expect("added");
        let until = app.now() + chrono::TimeDelta::minutes(5);
        let retired = async |at| retire(&app.db, PartnerId(1), "k", at, UserId(7)).await;
        assert_eq!(retired(Some(until)).await.expect("retired"), until);
        assert_eq!(retired(None).await.expect("earlier"), app.now());
        assert_eq!(retired(Some(until)).await.expect("kept"), app.now());
        let unknown = retire(&app.db, PartnerId(1), "x", None, UserId(7)).await;
        assert_eq!(unknown.map_err(|error| error.code()), Err("invalid-input"));
        let listed = list(&app.db, PartnerId(1)).await.expect("keys");
        let listed: Vec<_> = listed.iter().map(|key| (key.key_id.as_str(), key.suite.as_str()))
            .collect();
        assert_eq!(listed, [("k", "jose"), ("n", "gm")]);
        assert_eq!(house.round().await.failed, 1, "the new key's secrets are nowhere");
    }
}
