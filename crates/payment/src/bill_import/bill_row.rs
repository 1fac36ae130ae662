//! A row of a bill file.

use counterfoil_protocol::{BillMonth, Fen};

use super::cells::{Cells, Letters};
use super::gather::FileRow;
use super::{Column, RowFaults};

/// A bill as a file gives it: what makes the ledger row, the small bill, the partner bill and the
/// customer's account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BillRow {
    /// The line it stands on.
    pub line: u32,
    /// The station.
    pub station: String,
    /// The month.
    pub month: BillMonth,
    /// The rent that the contract says.
    pub contract_rent: Fen,
    /// The rent that came out.
    pub actual_rent: Fen,
    /// The rent that is meant to be paid; judged when the bill is selected, not here.
    pub pre_rent: Option<Fen>,
    /// The project company that pays.
    pub company: i64,
    /// The partner.
    pub partner: i64,
    /// Who receives it, where the file says so.
    pub payee: Option<Payee>,
    /// The small bill's amount; none = it is not pushed.
    pub small_amount: Option<Fen>,
    /// The partner bill's amount; none = there is none.
    pub partner_amount: Option<Fen>,
}

/// A customer's account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payee {
    /// Whose account it is.
    pub holder: String,
    /// Its number.
    pub account_no: String,
    /// The bank.
    pub bank: String,
}

/// Positions in [`COLUMNS`].
pub(super) mod column {
    pub const STATION: usize = 0;
    pub const MONTH: usize = 1;
    pub const CONTRACT_RENT: usize = 2;
    pub const ACTUAL_RENT: usize = 3;
    pub const PRE_RENT: usize = 4;
    pub const COMPANY: usize = 5;
    pub const PARTNER: usize = 6;
    pub const HOLDER: usize = 7;
    pub const ACCOUNT: usize = 8;
    pub const BANK: usize = 9;
    pub const SMALL_AMOUNT: usize = 10;
    pub const PARTNER_AMOUNT: usize = 11;
}

const COLUMNS: [Column; 12] = [
    Column { name: "station_id", chinese: "电站编号" },
    Column { name: "bill_yearmonth", chinese: "账期" },
    Column { name: "contract_rent", chinese: "合同租金" },
    Column { name: "actual_rent", chinese: "实际租金" },
    Column { name: "pre_rent", chinese: "拟付租金" },
    Column { name: "project_company_id", chinese: "项目公司" },
    Column { name: "partner_id", chinese: "合作方" },
    Column { name: "customer_name", chinese: "农户姓名" },
    Column { name: "customer_account", chinese: "收款账号" },
    Column { name: "bank_name", chinese: "开户行" },
    Column { name: "small_bill_amount", chinese: "小单金额" },
    Column { name: "partner_bill_amount", chinese: "合作方账单金额" },
];

/// The stored columns' widths.
pub(super) const LONGEST_CODE: usize = 64;
pub(super) const LONGEST_NAME: usize = 128;

impl FileRow for BillRow {
    const COLUMNS: &'static [Column] = &COLUMNS;
    const KEY: usize = column::STATION;

    fn key(cells: &Cells<'_>) -> Option<String> {
        let month: BillMonth = cells.get(column::MONTH).parse().ok()?;
        Some(format!("{}:{month}", cells.get(column::STATION)))
    }

    fn parse(cells: &Cells<'_>, faults: &mut RowFaults) -> Option<BillRow> {
        let mut rent = |column| {
            let fen = cells.money(column, faults);
            cells.not_negative(column, fen, faults)
        };
        let contract_rent = rent(column::CONTRACT_RENT);
        let actual_rent = rent(column::ACTUAL_RENT);
        // Letters::Code also keeps ':' out, which parts the two halves of a lock key.
        let station = cells.text(column::STATION, LONGEST_CODE, Letters::Code, faults);
        let month = cells.month(column::MONTH, faults);
        let pre_rent = cells.maybe_money(column::PRE_RENT, faults);
        let company = cells.id(column::COMPANY, faults);
        let partner = cells.id(column::PARTNER, faults);
        let payee = payee(cells, faults);
        let mut amount = |column| {
            let fen = cells.maybe_money(column, faults)?;
            if fen.is_some() {
                cells.not_negative(column, fen, faults)?;
            }
            Some(fen)
        };
        let small_amount = amount(column::SMALL_AMOUNT);
        let partner_amount = amount(column::PARTNER_AMOUNT);
        Some(BillRow {
            line: cells.line(),
            station: station?,
            month: month?,
            contract_rent: contract_rent?,
            actual_rent: actual_rent?,
            pre_rent: pre_rent?,
            company: company?,
            partner: partner?,
            payee: payee?,
            small_amount: small_amount?,
            partner_amount: partner_amount?,
        })
    }

    fn line(&self) -> u32 {
        self.line
    }
}

/// All three columns of the account or none of them; all three where a small bill is pushed,
/// because it is paid to that account.
fn payee(cells: &Cells<'_>, faults: &mut RowFaults) -> Option<Option<Payee>> {
    let holder = cells.maybe_text(column::HOLDER, LONGEST_NAME, Letters::Any, faults);
    let account_no = cells.maybe_text(column::ACCOUNT, LONGEST_CODE, Letters::Code, faults);
    let bank = cells.maybe_text(column::BANK, LONGEST_NAME, Letters::Any, faults);
    let (holder, account_no, bank) = (holder?, account_no?, bank?);
    let is_pushed = !cells.get(column::SMALL_AMOUNT).is_empty();
    if !is_pushed && holder.is_none() && account_no.is_none() && bank.is_none() {
        return Some(None);
    }
    let why = match is_pushed {
        true => "must not be blank where a small bill is pushed",
        false => "must not be blank where another column of the account is filled",
    };
    let there = [
        (column::HOLDER, holder.is_some()),
        (column::ACCOUNT, account_no.is_some()),
        (column::BANK, bank.is_some()),
    ];
    for (column, _) in there.iter().filter(|(_, is_there)| !is_there) {
        cells.fault(*column, why, faults);
    }
    Some(Some(Payee { holder: holder?, account_no: account_no?, bank: bank? }))
}
