//! A month of bills that never were, made from a printed seed: for the demo, for trying things
//! out and for tests. The same seed gives the same files, on every machine and for ever: the
//! numbers come from a generator of our own and not from a library that may change its mind.

mod bad;
pub(crate) mod random;
mod words;

use std::fs;
use std::io;
use std::path::Path;

use random::Random;
use words::{BANKS, COMPANIES, LONG_NAMES, PARTNERS, REGIONS, SHORT_NAMES, SURNAMES};

/// The seed of the files in `samples/2026-09`.
pub const DEFAULT_SEED: u64 = 20_260_901;
/// How many stations they have.
pub const DEFAULT_STATIONS: u32 = 2_500;
/// Their month.
pub const MONTH: &str = "202609";
/// The key of the asset managers in `sys_dict` that the companies name.
pub const ASSET_MANAGERS: [&str; 2] = ["AM01", "AM02"];

/// The files, by their content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// `companies.csv`: project companies.
    pub companies: String,
    /// `partners.csv`.
    pub partners: String,
    /// `accounts.csv`: the partners' accounts and those of households that have a small bill.
    pub accounts: String,
    /// `dictionary.csv`: for whom the treasury pays.
    pub dictionary: String,
    /// `bills.csv`.
    pub bills: String,
    /// `bills-bad.csv`: a good row and a dozen that are wrong, each in its own way.
    pub bad_bills: String,
}

impl Sample {
    /// The files with their names, in the order in which they can be imported.
    pub fn files(&self) -> [(&'static str, &str); 6] {
        [
            ("companies.csv", &self.companies),
            ("partners.csv", &self.partners),
            ("accounts.csv", &self.accounts),
            ("dictionary.csv", &self.dictionary),
            ("bills.csv", &self.bills),
            ("bills-bad.csv", &self.bad_bills),
        ]
    }

    /// Writes the files into a folder, which is made when missing.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for (name, content) in self.files() {
            fs::write(folder.join(name), content)?;
        }
        Ok(())
    }
}

/// Makes a month of bills for some stations, one bill a station.
pub fn generate(seed: u64, stations: u32) -> Sample {
    let mut random = Random::new(seed);
    let mut accounts = Table::new(&[
        "owner_kind",
        "owner_id",
        "holder_name",
        "account_no",
        "bank_name",
        "bank_code",
        "status",
    ]);
    let companies = companies(&mut random);
    let partners = partners(&mut random, &mut accounts);
    let mut bills = Table::new(&words::BILL_COLUMNS);
    for number in 1..=stations {
        let station = Station::new(&mut random, number);
        if station.has_small_bill {
            accounts.row(&[
                "customer",
                &station.id,
                &station.holder,
                &station.account_no,
                station.bank.0,
                station.bank.1,
                "1",
            ]);
        }
        bills.row(&station.bill(&mut random).each_ref().map(String::as_str));
    }
    Sample {
        companies,
        partners,
        accounts: accounts.text(),
        dictionary: dictionary(),
        bills: bills.text(),
        bad_bills: bad::bills(),
    }
}

/// The treasury pays for the first asset manager's companies; the other one's are paid offline.
fn dictionary() -> String {
    let mut table = Table::new(&["dict_type", "dict_key", "dict_value", "status"]);
    for (at, manager) in ASSET_MANAGERS.iter().enumerate() {
        let status = if at == 0 { "1" } else { "0" };
        table.row(&["ASSET_MANAGER", manager, "资产管理方", status]);
    }
    table.text()
}

fn companies(random: &mut Random) -> String {
    let mut table = Table::new(&[
        "id",
        "name",
        "asset_manager_code",
        "payer_account",
        "organisation",
        "epctenantid",
    ]);
    for (at, (name, organisation)) in COMPANIES.iter().enumerate() {
        // The last one has another asset manager: an order over it and others has no payment type.
        let manager = ASSET_MANAGERS[usize::from(at + 1 == COMPANIES.len())];
        let id = company_id(at);
        table.row(&[&id, name, manager, &account_no(random), organisation, "T2026"]);
    }
    table.text()
}

fn partners(random: &mut Random, accounts: &mut Table) -> String {
    let mut table = Table::new(&[
        "partner_id",
        "name",
        "partner_no",
        "org_code",
        "manager_a",
        "manager_b",
        "retry_policy",
        "endpoint",
        "key_id",
    ]);
    for (at, (name, policy)) in PARTNERS.iter().enumerate() {
        let id = partner_id(at);
        let number = at + 1;
        let bank = random.pick(&BANKS);
        let account = account_no(random);
        accounts.row(&["partner", &id, name, &account, bank.0, bank.1, "1"]);
        // The last one has no address: what would be pushed to it is skipped.
        let (endpoint, key) = match number == PARTNERS.len() {
            true => (String::new(), String::new()),
            false => (
                format!("https://partner-{number}.example/review-results"),
                format!("partner-{number}-2026"),
            ),
        };
        table.row(&[
            &id,
            name,
            &format!("HZ{number:04}"),
            &format!("9137{number:04}"),
            &format!("{}", 1_000 + number),
            &format!("{}", 2_000 + number),
            policy,
            &endpoint,
            &key,
        ]);
    }
    table.text()
}

/// The ids of the companies that the treasury pays for: all but the last.
pub fn treasury_companies() -> impl Iterator<Item = i64> {
    (0..COMPANIES.len() as i64 - 1).map(|at| FIRST_COMPANY + at)
}

/// The id of the company that is paid offline.
pub fn offline_company() -> i64 {
    FIRST_COMPANY + COMPANIES.len() as i64 - 1
}

const FIRST_COMPANY: i64 = 101;

fn company_id(at: usize) -> String {
    (FIRST_COMPANY + at as i64).to_string()
}

fn partner_id(at: usize) -> String {
    (201 + at).to_string()
}

/// Nineteen digits with their check digit, as bank cards have; 600000 is no bank's.
fn account_no(random: &mut Random) -> String {
    let digits = format!("600000{:012}", random.below(1_000_000_000_000));
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let digit = u32::from(digit - b'0');
            let weighted = if at % 2 == 0 { digit * 2 } else { digit };
            weighted / 10 + weighted % 10
        })
        .sum();
    format!("{digits}{}", (10 - sum % 10) % 10)
}

/// One household's roof.
struct Station {
    id: String,
    company: String,
    partner: String,
    holder: String,
    account_no: String,
    bank: (&'static str, &'static str),
    has_small_bill: bool,
    /// In fen.
    contract_rent: i64,
}

impl Station {
    fn new(random: &mut Random, number: u32) -> Station {
        let region = random.below(REGIONS.len() as u64) as usize;
        let family = random.pick(&SURNAMES);
        let given = match random.below(4) {
            0 => random.pick(&SHORT_NAMES).to_owned(),
            1 => format!("{}{}", random.pick(&SHORT_NAMES), random.pick(&SHORT_NAMES)),
            _ => random.pick(&LONG_NAMES).to_owned(),
        };
        // 20 to 60 panels at 18 to 25 yuan a month.
        let panels = 20 + random.below(41) as i64;
        let rate = 1_800 + 50 * random.below(15) as i64;
        Station {
            id: format!("{}-{number:06}", REGIONS[region]),
            company: company_id(region % COMPANIES.len()),
            partner: partner_id(random.below(PARTNERS.len() as u64) as usize),
            holder: format!("{family}{given}"),
            account_no: account_no(random),
            bank: random.pick(&BANKS),
            has_small_bill: !random.percent(12),
            contract_rent: panels * rate,
        }
    }

    /// The station's row of the bill file.
    fn bill(&self, random: &mut Random) -> [String; 12] {
        let actual_rent = self.actual_rent(random);
        let due = self.contract_rent.min(actual_rent);
        let pre_rent = match random.below(1_000) {
            0..20 => Some(due + 100 * (1 + random.below(300) as i64)),
            20..26 => None,
            26..28 => Some(-due),
            _ => Some(due),
        };
        let text = |text: &str| match self.has_small_bill {
            true => text.to_owned(),
            false => String::new(),
        };
        [
            self.id.clone(),
            MONTH.to_owned(),
            yuan(self.contract_rent),
            yuan(actual_rent),
            pre_rent.map(yuan).unwrap_or_default(),
            self.company.clone(),
            self.partner.clone(),
            text(&self.holder),
            text(&self.account_no),
            text(self.bank.0),
            text(&yuan(due)),
            yuan(due),
        ]
    }

    /// Within 5 % of the contract, but for four stations in a hundred.
    fn actual_rent(&self, random: &mut Random) -> i64 {
        let thousandths = match random.percent(4) {
            true => 80 + random.below(300) as i64,
            false => random.below(46) as i64,
        };
        let difference = self.contract_rent * thousandths / 1_000;
        match random.one_in(3) {
            true => self.contract_rent + difference,
            false => self.contract_rent - difference,
        }
    }
}

/// Fen as files have it.
fn yuan(fen: i64) -> String {
    let sign = if fen < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", fen.abs() / 100, fen.abs() % 100)
}

/// A CSV text. No cell of a sample needs quotation marks.
struct Table(String);

impl Table {
    fn new(columns: &[&str]) -> Table {
        let mut table = Table(String::new());
        table.row(columns);
        table
    }

    fn row(&mut self, cells: &[&str]) {
        self.0.push_str(&cells.join(","));
        self.0.push('\n');
    }

    fn text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_files_and_another_seed_gives_others() {
        assert_eq!(generate(1, 50), generate(1, 50));
        assert_ne!(generate(1, 50).bills, generate(2, 50).bills);
    }

    #[test]
    fn every_account_number_has_its_check_digit() {
        let mut random = Random::new(3);
        for _ in 0..100 {
            let number = account_no(&mut random);
            let sum: u32 = number
                .bytes()
                .rev()
                .enumerate()
                .map(|(at, digit)| {
                    let digit = u32::from(digit - b'0');
                    let weighted = if at % 2 == 1 { digit * 2 } else { digit };
                    weighted / 10 + weighted % 10
                })
                .sum();
            assert_eq!((number.len(), sum % 10), (19, 0), "{number}");
        }
    }

    #[test]
    fn a_month_has_the_shares_of_trouble_it_is_meant_to_have() {
        let bills = generate(DEFAULT_SEED, 20_000).bills;
        let (mut abnormal, mut wrong, mut missing, mut no_small_bill) = (0, 0, 0, 0);
        for line in bills.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let fen = |at: usize| cells[at].replace('.', "").parse::<i64>().ok();
            let (contract, actual) = (fen(2).unwrap(), fen(3).unwrap());
            abnormal += u32::from((contract - actual).abs() * 20 > contract);
            wrong += u32::from(fen(4).is_some_and(|pre| pre != contract.min(actual)));
            missing += u32::from(fen(4).is_none());
            no_small_bill += u32::from(cells[10].is_empty());
        }
        assert!((700..900).contains(&abnormal), "{abnormal}");
        assert!((360..520).contains(&wrong), "{wrong}");
        assert!((80..160).contains(&missing), "{missing}");
        assert!((2_200..2_600).contains(&no_small_bill), "{no_small_bill}");
    }
}
