//! On which terms a partner is told: address, policy, keys.

use counterfoil_db::{Instant, Read, Result, sql};
use counterfoil_protocol::PartnerId;

use super::{KeyReference, RetryPolicy};

/// Keys of one partner that count at a time: two while they rotate, and some to spare.
const MAX_KEYS: i64 = 8;

/// A partner's terms as they stand now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    /// The partner's own number.
    pub(super) partner_no: String,
    /// None = there is nobody to tell.
    pub(super) endpoint: Option<String>,
    pub(super) policy: RetryPolicy,
    current_key: Option<String>,
}

/// The terms of a partner. One that is not on record has no address: its record may come later.
pub(super) async fn terms(from: &impl Read, partner: Option<PartnerId>) -> Result<Terms> {
    let query = sql!(
        "SELECT partner_no, endpoint, retry_policy, key_id FROM sys_partner
         WHERE id = :partner AND deleted = 0",
        partner = partner.map(|partner| partner.0),
    );
    let Some(row) = from.row(query).await? else {
        return Ok(Terms {
            partner_no: String::new(),
            endpoint: None,
            policy: RetryPolicy::default(),
            current_key: None,
        });
    };
    let endpoint = row.maybe_text("endpoint")?.map(|text| text.trim().to_owned());
    Ok(Terms {
        partner_no: row.text("partner_no")?,
        endpoint: endpoint.filter(|text| !text.is_empty()),
        policy: RetryPolicy::stored(&row.text("retry_policy")?),
        current_key: row.maybe_text("key_id")?,
    })
}

/// The keys of a partner that count at `now`, as a receiver holds them.
pub async fn receiving_keys(
    from: &impl Read,
    partner: PartnerId,
    now: Instant,
) -> Result<Vec<KeyReference>> {
    let terms = terms(from, Some(partner)).await?;
    keys(from, Some(partner), &terms, now).await
}

/// The partner's keys that count at `now`: the one its record names first, then the newest.
pub(super) async fn keys(
    from: &impl Read,
    partner: Option<PartnerId>,
    terms: &Terms,
    now: Instant,
) -> Result<Vec<KeyReference>> {
    let query = sql!(
        "SELECT key_id, suite, signing_secret_ref, encryption_key_ref FROM partner_key
         WHERE partner_id = :partner AND deleted = 0
           AND (valid_from IS NULL OR valid_from <= :now)
           AND (retired_time IS NULL OR retired_time > :now)
         ORDER BY CASE WHEN key_id = :current THEN 0 ELSE 1 END,
                  COALESCE(valid_from, create_time) DESC, id DESC
         LIMIT :limit",
        partner = partner.map(|partner| partner.0),
        now = now,
        current = terms.current_key.as_deref(),
        limit = MAX_KEYS,
    );
    let mut keys = Vec::new();
    for row in from.rows(query).await? {
        keys.push(KeyReference {
            key_id: row.text("key_id")?,
            suite: row.text("suite")?,
            signing: row.text("signing_secret_ref")?,
            encryption: row.text("encryption_key_ref")?,
        });
    }
    Ok(keys)
}
