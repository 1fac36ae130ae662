//! A payee that changed after approval is not paid by what was approved: a person decides.

use counterfoil_db::{Tx, sql};

use crate::treasury::TreasuryError;

/// Sets details aside whose line's payee snapshot is not the current account's. Answers how many.
///
/// Guard: WAIT_PUSH, and not put right by a person already. A line without any account reference
/// has nothing to compare; a referenced account that is gone or closed counts as changed.
pub(super) async fn set_changed_aside(tx: &mut Tx, batch: i64) -> Result<u64, TreasuryError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_push_batch_detail
         SET push_status = 'WAIT_DATA_FIX', error_code = 'payee-changed',
             error_message = 'the payee was changed after approval', update_time = :now
         WHERE push_batch_id = :batch AND push_status = 'WAIT_PUSH' AND fixed_flag = 0
           AND deleted = 0
           AND EXISTS (
             SELECT 1 FROM fi_resident_income_payment_order_bill l
             LEFT JOIN fi_customer_bill b ON b.id = l.small_bill_id AND b.deleted = 0
             LEFT JOIN fi_customer_account ca
               ON ca.id = b.customer_account_id AND ca.deleted = 0
             LEFT JOIN fi_customer_bill_partner p ON p.id = l.partner_bill_id AND p.deleted = 0
             LEFT JOIN fi_customer_account_partner pa
               ON pa.id = p.partner_account_id AND pa.deleted = 0
             WHERE l.id = fi_resident_income_payment_push_batch_detail.order_bill_id
               AND (b.customer_account_id IS NOT NULL OR p.partner_account_id IS NOT NULL)
               AND (COALESCE(ca.id, pa.id) IS NULL
                 OR COALESCE(ca.status, pa.status) <> 1
                 OR COALESCE(ca.holder_name, pa.holder_name, '') <> COALESCE(l.payee_name, '')
                 OR COALESCE(ca.account_no, pa.account_no, '') <> COALESCE(l.payee_account, '')
                 OR COALESCE(ca.bank_name, pa.bank_name, '') <> COALESCE(l.payee_bank, '')))",
        now = now,
        batch = batch,
    );
    Ok(tx.execute(update).await?)
}
