//! What one bill row does to what is stored: a pure decision.

use counterfoil_protocol::Fen;

use super::bill_row::{BillRow, column};

/// What is stored about one bill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BillStored {
    /// Live ledger rows; more than one is a defect of the data.
    pub ledgers: Vec<StoredLedger>,
    /// Live small bills.
    pub smalls: Vec<StoredSmall>,
    /// Live partner bills.
    pub partners: Vec<StoredPartner>,
    /// The station's customer accounts.
    pub accounts: Vec<StoredAccount>,
    /// Who holds the bill, by its lock or by a reference in one of the three tables.
    pub holder: Option<Holder>,
}

/// A row of the difference ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLedger {
    /// Its id.
    pub id: i64,
    /// Contract rent.
    pub contract_rent: Option<Fen>,
    /// Actual rent.
    pub actual_rent: Option<Fen>,
    /// Intended rent.
    pub pre_rent: Option<Fen>,
    /// Project company.
    pub company: Option<i64>,
    /// Partner.
    pub partner: Option<i64>,
}

/// A small bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSmall {
    /// Its id.
    pub id: i64,
    /// Its amount.
    pub amount: Fen,
    /// Whether it is pushed.
    pub is_pushed: bool,
    /// The account it is paid to.
    pub account: Option<i64>,
}

/// A partner bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPartner {
    /// Its id.
    pub id: i64,
    /// Its amount.
    pub amount: Fen,
    /// Its partner.
    pub partner: Option<i64>,
}

/// A customer's account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAccount {
    /// Its id.
    pub id: i64,
    /// Its number.
    pub account_no: String,
    /// The holder's name.
    pub holder: String,
    /// The bank's name.
    pub bank: String,
    /// A held bill that is paid to it, if any: its month and its order.
    pub held_bill: Option<String>,
}

/// The order that holds a bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The order's number, or its id where it has none.
    pub order: String,
}

/// What happens to one stored row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Step {
    /// It is right, or there is none and none is wanted.
    #[default]
    Keep,
    /// It is made.
    Insert,
    /// It is brought into line.
    Update(i64),
}

/// What one bill row does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BillPlan {
    /// To the ledger.
    pub ledger: Step,
    /// To the small bill.
    pub small: Step,
    /// To the partner bill.
    pub partner: Step,
    /// To the customer's account.
    pub account: Step,
}

impl BillPlan {
    /// Whether the file says what is stored.
    pub fn is_empty(&self) -> bool {
        *self == BillPlan::default()
    }
}

/// Why a row is refused: the column's position and the end of a sentence about it.
pub type Refusal = (usize, String);

/// Decides what a row does.
///
/// # Errors
/// One refusal for every column that differs from what is stored while the bill is held, or for
/// what is wrong with the stored rows themselves.
pub(super) fn decide(row: &BillRow, stored: &BillStored) -> Result<BillPlan, Vec<Refusal>> {
    let doubles = doubles(stored);
    if !doubles.is_empty() {
        return Err(doubles);
    }
    let mut found = Found::default();
    found.ledger(row, stored.ledgers.first());
    let account = found.account(row, stored);
    found.small(row, stored.smalls.first(), account);
    found.partner(row, stored.partners.first());
    if let Some(holder) = &stored.holder
        && !found.plan.is_empty()
    {
        let why = |what: &str| format!("{what}, and order {} holds the bill", holder.order);
        return Err(found
            .differences
            .iter()
            .map(|(at, what)| (*at, why(what)))
            .collect());
    }
    match found.refusals.is_empty() {
        true => Ok(found.plan),
        false => Err(found.refusals),
    }
}

fn doubles(stored: &BillStored) -> Vec<Refusal> {
    let ids = [
        (
            "ledger",
            stored.ledgers.iter().map(|row| row.id).collect::<Vec<_>>(),
        ),
        (
            "small bill",
            stored.smalls.iter().map(|row| row.id).collect(),
        ),
        (
            "partner bill",
            stored.partners.iter().map(|row| row.id).collect(),
        ),
    ];
    let doubles = ids.iter().filter(|(_, ids)| ids.len() > 1);
    doubles
        .map(|(what, ids)| {
            let why = format!("has this month's {what} stored more than once: ids {ids:?}");
            (column::STATION, why)
        })
        .collect()
}

#[derive(Default)]
struct Found {
    plan: BillPlan,
    differences: Vec<(usize, String)>,
    refusals: Vec<Refusal>,
}

impl Found {
    /// One difference a column: a new account is new to the small bill too.
    fn differs(&mut self, column: usize, what: impl Into<String>) {
        if self.differences.iter().all(|(known, _)| *known != column) {
            self.differences.push((column, what.into()));
        }
    }

    fn ledger(&mut self, row: &BillRow, stored: Option<&StoredLedger>) {
        let Some(stored) = stored else {
            self.differs(column::STATION, "has no ledger row for this month");
            self.plan.ledger = Step::Insert;
            return;
        };
        let known = self.differences.len();
        let money = [
            (
                column::CONTRACT_RENT,
                Some(row.contract_rent),
                stored.contract_rent,
            ),
            (
                column::ACTUAL_RENT,
                Some(row.actual_rent),
                stored.actual_rent,
            ),
            (column::PRE_RENT, row.pre_rent, stored.pre_rent),
        ];
        for (column, new, old) in money {
            if new != old {
                self.differs(column, format!("differs from the stored {}", shown(old)));
            }
        }
        let ids = [
            (column::COMPANY, row.company, stored.company),
            (column::PARTNER, row.partner, stored.partner),
        ];
        for (column, new, old) in ids {
            if Some(new) != old {
                let old = old.map_or("blank".to_owned(), |id| id.to_string());
                self.differs(column, format!("differs from the stored {old}"));
            }
        }
        if self.differences.len() > known {
            self.plan.ledger = Step::Update(stored.id);
        }
    }

    /// The stored account of the row's number, if there is one.
    fn account<'s>(&mut self, row: &BillRow, stored: &'s BillStored) -> Option<&'s StoredAccount> {
        let payee = row.payee.as_ref()?;
        let account = stored
            .accounts
            .iter()
            .find(|known| known.account_no == payee.account_no);
        let Some(account) = account else {
            self.differs(column::ACCOUNT, "is not stored for this station");
            self.plan.account = Step::Insert;
            return None;
        };
        let texts = [
            (column::HOLDER, &payee.holder, &account.holder),
            (column::BANK, &payee.bank, &account.bank),
        ];
        for (column, _, _) in texts.iter().filter(|(_, new, old)| new != old) {
            // The account serves other months too; the account file is for changing those.
            if let Some(held) = &account.held_bill {
                let why = format!("differs from the stored account, which {held} is paid to");
                self.refusals.push((*column, why));
            }
            self.differs(*column, "differs from the stored account");
            self.plan.account = Step::Update(account.id);
        }
        Some(account)
    }

    fn small(
        &mut self,
        row: &BillRow,
        stored: Option<&StoredSmall>,
        account: Option<&StoredAccount>,
    ) {
        let step = match (row.small_amount, stored) {
            (None, None) => return,
            (Some(_), None) => {
                self.differs(column::SMALL_AMOUNT, "is not stored");
                Step::Insert
            }
            (None, Some(stored)) if !stored.is_pushed => return,
            (amount, Some(stored)) => {
                let old = stored.is_pushed.then_some(stored.amount);
                if amount != old {
                    let what = format!("differs from the stored {}", shown(old));
                    self.differs(column::SMALL_AMOUNT, what);
                }
                // A row that pushes no small bill says nothing about where it is paid to.
                let is_moved =
                    amount.is_some() && stored.account != account.map(|account| account.id);
                if is_moved {
                    self.differs(column::ACCOUNT, "differs from the stored account");
                }
                update_if(amount != old || is_moved, stored.id)
            }
        };
        self.plan.small = step;
    }

    fn partner(&mut self, row: &BillRow, stored: Option<&StoredPartner>) {
        let step = match (row.partner_amount, stored) {
            (None, None) => return,
            (Some(_), None) => {
                self.differs(column::PARTNER_AMOUNT, "is not stored");
                Step::Insert
            }
            // Withdrawn bills stay, with nothing to pay: sessions may refer to them.
            (None, Some(stored)) if stored.amount == Fen::ZERO => return,
            (amount, Some(stored)) => {
                let new = amount.unwrap_or_default();
                if new != stored.amount {
                    let what = format!("differs from the stored {}", stored.amount);
                    self.differs(column::PARTNER_AMOUNT, what);
                }
                let is_moved = stored.partner != Some(row.partner);
                if is_moved {
                    self.differs(column::PARTNER, "differs from the stored partner bill's");
                }
                update_if(new != stored.amount || is_moved, stored.id)
            }
        };
        self.plan.partner = step;
    }
}

fn update_if(differs: bool, id: i64) -> Step {
    if differs {
        Step::Update(id)
    } else {
        Step::Keep
    }
}

fn shown(fen: Option<Fen>) -> String {
    fen.map_or("blank".to_owned(), |fen| fen.to_string())
}

#[cfg(test)]
mod tests;
