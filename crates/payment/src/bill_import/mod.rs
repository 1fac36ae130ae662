//! Importing bills, and the companies, partners and accounts they refer to, from files.
//!
//! Text cells come in, with the line each row stands on; what is wrong with them comes out by line
//! and column. Everything is validated before anything is written, and what is written is one
//! transaction: a file is in the database wholly or not at all, also when the process dies.
//! Source: `shared/spec/inputs.md`.

mod account_row;
mod accounts;
mod bill_facts;
mod bill_plan;
mod bill_row;
mod bill_statements;
mod bill_write;
mod bills;
mod cells;
mod companies;
mod dictionary;
mod fault;
mod gather;
mod partners;
mod sheet;
mod turn;

pub use account_row::{AccountOwner, AccountRow};
pub use accounts::import_accounts;
pub use bill_plan::{BillPlan, BillStored, Holder, Step, StoredLedger, StoredPartner, StoredSmall};
pub use bill_row::{BillRow, Payee};
pub use bills::import_bills;
pub use companies::{CompanyRow, import_companies};
pub use dictionary::{EntryRow, import_dictionary};
pub use fault::{MAX_FAULTS, RowFault, RowFaults};
pub use partners::{PartnerRow, import_partners};
pub use sheet::{Column, SheetRow, Unread};

/// Rows of a file at most; more are refused before anything is read from the database.
pub const MAX_ROWS: u32 = 1_000_000;
/// Rows a statement reads or writes. Eleven values a row stay far below SQLite's 32 766; above a
/// thousand MariaDB turns `IN` lists into joins.
pub const ROWS_A_CHUNK: usize = 1_000;
/// How often an import starts again because bills were taken into an order while it ran.
const MAX_STARTS: u32 = 3;
/// Explicit ids of imports lie below; generated ids start here.
const FIRST_GENERATED_ID: i64 = 1_000_000_000_000;

/// How to import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Import the good rows of a file that has bad ones too.
    pub partial: bool,
}

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Rows that made something new.
    pub created: u64,
    /// Rows that changed something stored.
    pub updated: u64,
    /// Rows that are stored just so already.
    pub unchanged: u64,
    /// Rows left out, with `partial`.
    pub refused: u64,
    /// Why they were left out.
    pub faults: RowFaults,
}

impl Imported {
    fn count(&mut self, steps: &[Option<Step>]) {
        for step in steps.iter().flatten() {
            let counter = match step {
                Step::Insert => &mut self.created,
                Step::Update(_) => &mut self.updated,
                Step::Keep => &mut self.unchanged,
            };
            *counter += 1;
        }
    }

    fn leave_out(&mut self, refusals: gather::Refusals) {
        self.refused = refusals.lines.len() as u64;
        self.faults = refusals.faults;
    }
}
