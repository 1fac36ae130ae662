//! `counterfoil partner key`: the keys that messages to a partner are sealed and signed with.

use anyhow::Result;
use counterfoil_db::Instant;
use counterfoil_payment::partner_key::{KeyOnRecord, NewKey, add, list, retire};
use counterfoil_protocol::{PartnerId, UserId};
use serde_json::json;

use super::output::table;
use super::{Output, Session};
use crate::config;

/// What to do with partners.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Keys: list, add, retire
    #[command(subcommand)]
    Key(KeyCommand),
}

/// What to do with a partner's keys.
#[derive(Debug, clap::Subcommand)]
pub(super) enum KeyCommand {
    /// Lists a partner's keys, retired ones too
    List {
        /// The partner
        partner: PartnerId,
    },
    /// Adds a key; the database learns where the secrets are, never the secrets
    Add {
        /// The partner
        partner: PartnerId,
        /// The key's name, which both houses know
        key: String,
        /// Where the signing secret is: env:NAME or file:PATH (whsec_ and base64)
        #[arg(long)]
        signing: String,
        /// Where the encryption key is: env:NAME or file:PATH (base64url without padding)
        #[arg(long)]
        encryption: String,
        /// jose (JWE A256GCM, HMAC-SHA256) or gm (SM4-GCM, HMAC-SM3)
        #[arg(long, default_value = "jose")]
        suite: String,
        /// From when it counts (RFC 3339); at once, if not given
        #[arg(long, value_parser = config::instant)]
        valid_from: Option<Instant>,
    },
    /// Retires a key: from then on it seals, signs and opens nothing
    Retire {
        /// The partner
        partner: PartnerId,
        /// The key's name
        key: String,
        /// From when (RFC 3339); at once, if not given
        #[arg(long, value_parser = config::instant)]
        at: Option<Instant>,
    },
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let db = session.open_migrated().await?;
    let Command::Key(command) = command;
    match command {
        KeyCommand::List { partner } => Ok(listed(&list(&db, partner).await?)),
        KeyCommand::Add { partner, key, signing, encryption, suite, valid_from } => {
            let user = UserId(session.user()?);
            let new = NewKey { partner, key_id: key, suite, signing, encryption, valid_from };
            add(&db, &new, user).await?;
            let NewKey { key_id, .. } = new;
            let text = format!("partner {partner} has the key {key_id}");
            Ok(Output::new(json!({ "partnerId": partner, "keyId": key_id }), text))
        }
        KeyCommand::Retire { partner, key, at } => {
            let user = UserId(session.user()?);
            let at = retire(&db, partner, &key, at, user).await?;
            let json = json!({ "partnerId": partner, "keyId": key, "retiredTime": at });
            Ok(Output::new(json, format!("key {key} of partner {partner} counts until {at}")))
        }
    }
}

fn listed(keys: &[KeyOnRecord]) -> Output {
    let time = |time: Option<Instant>| {
        time.map_or_else(String::new, |time| {
            time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
        })
    };
    let rows: Vec<Vec<String>> = keys
        .iter()
        .map(|key| {
            vec![
                key.key_id.clone(),
                key.suite.clone(),
                key.signing_secret_ref.clone(),
                key.encryption_key_ref.clone(),
                time(key.valid_from),
                time(key.retired_time),
            ]
        })
        .collect();
    let text = if rows.is_empty() {
        "no key".to_owned()
    } else {
        table(&["KEY", "SUITE", "SIGNING", "ENCRYPTION", "FROM", "RETIRED"], &rows)
    };
    Output::new(json!({ "keys": keys }), text)
}
