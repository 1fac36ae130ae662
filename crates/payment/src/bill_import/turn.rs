//! One import at a time: the business tables carry no unique index on a bill, because historical
//! data may hold doubles, so two imports at once would each make the same new bill.

use counterfoil_db::{Dialect, Read, Tx, sql};

use crate::PaymentError;

/// Waits for its turn and keeps it until the transaction ends.
pub(super) async fn take_turn(tx: &mut Tx) -> Result<(), PaymentError> {
    if tx.dialect() == Dialect::Postgres {
        // A first import fills empty tables. A statement planned while they were empty would be
        // run to the end as planned then, reading whole tables: measured, 340 s instead of 8 s.
        tx.execute(sql!("SET LOCAL plan_cache_mode = force_custom_plan")).await?;
    }
    if raise_count(tx).await? {
        return Ok(());
    }
    // Only the first import ever comes here. Not tried first: on MariaDB an ignored insert keeps
    // a shared lock, and two of those waiting to update deadlock.
    let now = tx.now();
    let ensure = sql!(
        "{insert_ignore} INTO bill_import_turn (turn_name, create_time, update_time)
         VALUES ('import', :now, :now)
         {or_ignore}",
        now = now,
    );
    tx.execute(ensure).await?;
    match raise_count(tx).await? {
        true => Ok(()),
        false => Err(PaymentError::Conflict("the import's turn".into())),
    }
}

/// Locks the row; whether there is one.
async fn raise_count(tx: &mut Tx) -> Result<bool, PaymentError> {
    let now = tx.now();
    let take = sql!(
        "UPDATE bill_import_turn SET taken_count = taken_count + 1, update_time = :now
         WHERE turn_name = 'import' AND deleted = 0",
        now = now,
    );
    Ok(tx.execute(take).await? == 1)
}
