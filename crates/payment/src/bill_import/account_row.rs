//! A row of an account file.

use super::bill_row::{LONGEST_CODE, LONGEST_NAME};
use super::cells::{Cells, Letters};
use super::gather::FileRow;
use super::{Column, RowFaults};

/// Whose account it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AccountOwner {
    /// A farm household, named by its station.
    Customer(String),
    /// A partner.
    Partner(i64),
}

/// An account as a file gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRow {
    /// The line it stands on.
    pub line: u32,
    /// Whose it is; with the number it makes the account this account.
    pub owner: AccountOwner,
    /// The holder's name.
    pub holder: String,
    /// The account's number.
    pub account_no: String,
    /// The bank's name.
    pub bank: String,
    /// The bank's code.
    pub bank_code: String,
    /// 1 normal, 0 not to be paid to.
    pub status: i64,
}

/// Positions in [`COLUMNS`].
pub(super) mod column {
    pub const OWNER_KIND: usize = 0;
    pub const OWNER_ID: usize = 1;
    pub const HOLDER: usize = 2;
    pub const ACCOUNT: usize = 3;
    pub const BANK: usize = 4;
    pub const BANK_CODE: usize = 5;
    pub const STATUS: usize = 6;
}

const COLUMNS: [Column; 7] = [
    Column { name: "owner_kind", chinese: "账户类型" },
    Column { name: "owner_id", chinese: "归属编号" },
    Column { name: "holder_name", chinese: "户名" },
    Column { name: "account_no", chinese: "账号" },
    Column { name: "bank_name", chinese: "开户行" },
    Column { name: "bank_code", chinese: "联行号" },
    Column { name: "status", chinese: "状态" },
];

const LONGEST_BANK_CODE: usize = 32;
/// `true` = a customer's.
const OWNER_KINDS: [(&str, bool); 4] =
    [("customer", true), ("partner", false), ("农户", true), ("合作方", false)];
const STATUSES: [(&str, i64); 4] = [("1", 1), ("0", 0), ("正常", 1), ("停用", 0)];

impl FileRow for AccountRow {
    const COLUMNS: &'static [Column] = &COLUMNS;
    const KEY: usize = column::ACCOUNT;

    fn key(cells: &Cells<'_>) -> Option<String> {
        let kind = cells.get(column::OWNER_KIND);
        let (_, is_customer) = OWNER_KINDS.iter().find(|(word, _)| *word == kind)?;
        let owner = match is_customer {
            true => cells.get(column::OWNER_ID),
            false => cells.get(column::OWNER_ID).trim_start_matches('0'),
        };
        Some(format!("{is_customer}:{owner}:{}", cells.get(column::ACCOUNT)))
    }

    fn parse(cells: &Cells<'_>, faults: &mut RowFaults) -> Option<AccountRow> {
        let is_customer = cells.choice(column::OWNER_KIND, &OWNER_KINDS, faults);
        let owner = is_customer.and_then(|is_customer| match is_customer {
            true => cells
                .text(column::OWNER_ID, LONGEST_CODE, Letters::Code, faults)
                .map(AccountOwner::Customer),
            false => cells.id(column::OWNER_ID, faults).map(AccountOwner::Partner),
        });
        let holder = cells.text(column::HOLDER, LONGEST_NAME, Letters::Any, faults);
        let account_no = cells.text(column::ACCOUNT, LONGEST_CODE, Letters::Code, faults);
        let bank = cells.text(column::BANK, LONGEST_NAME, Letters::Any, faults);
        let bank_code =
            cells.maybe_text(column::BANK_CODE, LONGEST_BANK_CODE, Letters::Code, faults);
        let status = cells.choice(column::STATUS, &STATUSES, faults);
        Some(AccountRow {
            line: cells.line(),
            owner: owner?,
            holder: holder?,
            account_no: account_no?,
            bank: bank?,
            bank_code: bank_code?.unwrap_or_default(),
            status: status?,
        })
    }

    fn line(&self) -> u32 {
        self.line
    }
}
