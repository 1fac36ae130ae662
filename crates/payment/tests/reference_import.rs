//! Importing companies, partners and accounts.

mod bill_file;

use bill_file::{PARTIAL, WHOLE, execute, import, refusals, sheet, table};
use counterfoil_db::{Db, FaultAction, FaultPlan, Side};
use counterfoil_e2e::on_every_database;
use counterfoil_payment::PaymentError;
use counterfoil_payment::bill_import::{
    Imported, import_accounts, import_companies, import_partners,
};

const COMPANIES: &str = "id,name,asset_manager_code,payer_account,organisation,epctenantid
1,甲公司,AM1,8001,ORG1,T1
2,乙公司,,,ORG2,T1
";
const PARTNERS: &str =
    "合作方,名称,合作方编号,机构代码,运营经理A,运营经理B,重试策略,推送地址,密钥编号
7,丙,P7,O7,11,12,definite,https://p7.example/push,k7
8,丁,P8,O8,11,12,never,,
";
const ACCOUNTS: &str = "owner_kind,owner_id,holder_name,account_no,bank_name,bank_code,status
customer,S1,张三,622200001,中国银行,102,1
partner,7,丙,7001,建设银行,105,1
合作方,8,丁,8001,建设银行,,停用
";

async fn companies(db: &Db, text: &str) -> Result<Imported, PaymentError> {
    import_companies(db, sheet(text).into_iter(), WHOLE).await
}

async fn partners(db: &Db, text: &str) -> Result<Imported, PaymentError> {
    import_partners(db, sheet(text).into_iter(), WHOLE).await
}

async fn accounts(db: &Db, text: &str) -> Result<Imported, PaymentError> {
    import_accounts(db, sheet(text).into_iter(), WHOLE).await
}

fn counts(imported: &Imported) -> [u64; 4] {
    [
        imported.created,
        imported.updated,
        imported.unchanged,
        imported.refused,
    ]
}

on_every_database! {
    async fn companies_partners_and_accounts_are_made_kept_and_brought_into_line(app: TestApp) {
        let db = app.db.clone();
        assert_eq!(counts(&companies(&db, COMPANIES).await.unwrap()), [2, 0, 0, 0]);
        assert_eq!(counts(&partners(&db, PARTNERS).await.unwrap()), [2, 0, 0, 0]);
        assert_eq!(counts(&accounts(&db, ACCOUNTS).await.unwrap()), [3, 0, 0, 0]);
        assert_eq!(counts(&companies(&db, COMPANIES).await.unwrap()), [0, 0, 2, 0]);
        assert_eq!(counts(&partners(&db, PARTNERS).await.unwrap()), [0, 0, 2, 0]);
        assert_eq!(counts(&accounts(&db, ACCOUNTS).await.unwrap()), [0, 0, 3, 0]);
        let text = COMPANIES.replace("AM1", "").replace("乙公司", "乙二公司");
        assert_eq!(counts(&companies(&db, &text).await.unwrap()), [0, 2, 0, 0]);
        let text = PARTNERS.replace("k7", "").replace("never,", "idempotent,http://p8");
        assert_eq!(counts(&partners(&db, &text).await.unwrap()), [0, 2, 0, 0]);
        let text = ACCOUNTS.replace("102,1", "102,0").replace("105", "106");
        assert_eq!(counts(&accounts(&db, &text).await.unwrap()), [0, 2, 1, 0]);
        let stored = "SELECT id, name, asset_manager_code, payer_account, organisation,
                             epctenantid FROM sys_project_company ORDER BY id";
        assert_eq!(table(&db, stored).await, ["1 甲公司 - 8001 ORG1 T1", "2 乙二公司 - - ORG2 T1"]);
        let stored = "SELECT id, partner_no, manager_a_user_id, manager_b_user_id, retry_policy,
                             endpoint, key_id, split_rule FROM sys_partner ORDER BY id";
        assert_eq!(table(&db, stored).await, [
            "7 P7 11 12 definite https://p7.example/push - NONE",
            "8 P8 11 12 idempotent http://p8 - NONE",
        ]);
        let stored = "SELECT partner_id, account_no, bank_code, status
                      FROM fi_customer_account_partner ORDER BY partner_id";
        assert_eq!(table(&db, stored).await, ["7 7001 106 1", "8 8001  0"]);
        let stored = "SELECT customer_id, account_no, bank_code, status FROM fi_customer_account";
        assert_eq!(table(&db, stored).await, ["S1 622200001 102 0"]);
    }

    async fn every_kind_of_bad_reference_row_is_refused_by_line_and_column(app: TestApp) {
        let db = app.db.clone();
        partners(&db, PARTNERS).await.unwrap();
        execute(&db, "INSERT INTO sys_project_company (id, deleted) VALUES (9, 1)").await;
        for (row, refusal) in [
            ("1,,,,O,T", "line 2, name: must not be blank"),
            ("0,x,,,O,T",
             "line 2, id: \"0\" is no id: write a whole number from 1 to 999999999999"),
            ("9,x,,,O,T", "line 2, id: 9 was deleted; take another id"),
        ] {
            let header = COMPANIES.lines().next().unwrap();
            let refused = companies(&db, &format!("{header}\n{row}\n")).await;
            assert_eq!(refusals(refused), [refusal]);
        }
        for (row, refusal) in [
            ("3,x,P,O,5,5,never,,",
             "line 2, 运营经理B: must be another person than manager A: nobody decides twice"),
            ("3,x,P,O,5,6,often,,",
             "line 2, 重试策略: \"often\" is none of never, definite, idempotent"),
            ("3,x,P,O,5,6,never,ftp://a,",
             "line 2, 推送地址: is no address: it must start with https:// or http://"),
        ] {
            let header = PARTNERS.lines().next().unwrap();
            let refused = partners(&db, &format!("{header}\n{row}\n")).await;
            assert_eq!(refusals(refused), [refusal]);
        }
        for (row, refusal) in [
            ("bank,1,x,1,b,,1",
             "line 2, owner_kind: \"bank\" is none of customer, partner, 农户, 合作方"),
            ("partner,3,x,1,b,,1",
             "line 2, owner_id: 3 is no partner; import partners first"),
            ("partner,7,x,1,b,,2", "line 2, status: \"2\" is none of 1, 0, 正常, 停用"),
        ] {
            let header = ACCOUNTS.lines().next().unwrap();
            let refused = accounts(&db, &format!("{header}\n{row}\n")).await;
            assert_eq!(refusals(refused), [refusal]);
        }
    }

    async fn a_row_that_is_there_twice_is_refused_and_the_rest_imported_in_part(app: TestApp) {
        let db = app.db.clone();
        let text = format!("{COMPANIES}01,甲,,,ORG1,T1\n");
        assert_eq!(refusals(companies(&db, &text).await), [
            "line 2, id: is on line 4 again",
            "line 4, id: is on line 2 already",
        ]);
        let partial = import_companies(&db, sheet(&text).into_iter(), PARTIAL).await.unwrap();
        assert_eq!(counts(&partial), [1, 0, 0, 2]);
        assert_eq!(table(&db, "SELECT id FROM sys_project_company").await, ["2"]);
    }

    async fn a_bill_row_finds_the_account_that_the_account_file_brought(app: TestApp) {
        let db = app.db.clone();
        companies(&db, COMPANIES).await.unwrap();
        partners(&db, PARTNERS).await.unwrap();
        accounts(&db, ACCOUNTS).await.unwrap();
        import(&db, &[bill_file::S1]).await.unwrap();
        let stored = "SELECT a.bank_code, a.bank_name FROM fi_customer_bill s
                      JOIN fi_customer_account a ON a.id = s.customer_account_id";
        assert_eq!(table(&db, stored).await, ["102 中国银行"]);
        assert_eq!(table(&db, "SELECT id FROM fi_customer_account").await.len(), 1);
    }

    async fn partner_bills_get_their_partners_account_when_it_comes_or_changes(app: TestApp) {
        let db = app.db.clone();
        companies(&db, COMPANIES).await.unwrap();
        partners(&db, PARTNERS).await.unwrap();
        let bill = |station: &str| format!("{station},202609,9,9,9,1,7,,,,,9");
        import(&db, &[&bill("S1"), &bill("S2"), &bill("S3")]).await.unwrap();
        for statement in [
            "INSERT INTO fi_resident_income_payment_bill_lock
               (lock_key, lock_status, payment_order_id, station_id, bill_yearmonth)
             VALUES ('S2:202609', 'ACTIVE', 5, 'S2', '202609')",
            "UPDATE fi_customer_bill_partner SET locked_payment_order_id = 5
             WHERE station_id = 'S3'",
        ] {
            execute(&db, statement).await;
        }
        let stored = "SELECT p.station_id, a.account_no FROM fi_customer_bill_partner p
                      LEFT JOIN fi_customer_account_partner a ON a.id = p.partner_account_id
                      ORDER BY p.station_id";
        accounts(&db, ACCOUNTS).await.unwrap();
        assert_eq!(table(&db, stored).await, ["S1 7001", "S2 -", "S3 -"]);
        let moved = format!("{}partner,7,丙,7002,建设银行,105,1\n", ACCOUNTS.replace("105,1", "105,0"));
        accounts(&db, &moved).await.unwrap();
        assert_eq!(table(&db, stored).await, ["S1 7002", "S2 -", "S3 -"]);
    }

    async fn a_crash_leaves_no_half_of_a_reference_file(app: TestApp) {
        let db = app.db.clone();
        companies(&db, COMPANIES).await.unwrap();
        let armed = |point: &str, side| {
            let action = FaultAction::Crash;
            db.faults().arm(FaultPlan { point: point.into(), side, passage: 1, action });
        };
        for (side, found) in [(Side::Before, 0), (Side::After, 2)] {
            armed("import.partners", side);
            assert!(partners(&db, PARTNERS).await.is_err());
            assert_eq!(table(&db, "SELECT id FROM sys_partner").await.len(), found);
        }
        for (side, found) in [(Side::Before, [0, 0]), (Side::After, [1, 2])] {
            armed("import.accounts", side);
            assert!(accounts(&db, ACCOUNTS).await.is_err());
            for (name, found) in
                ["fi_customer_account", "fi_customer_account_partner"].iter().zip(found)
            {
                assert_eq!(table(&db, format!("SELECT id FROM {name}")).await.len(), found);
            }
        }
        armed("import.companies", Side::Before);
        let renamed = COMPANIES.replace("甲公司", "新公司");
        assert!(companies(&db, &renamed).await.is_err());
        let names = table(&db, "SELECT name FROM sys_project_company ORDER BY id").await;
        assert_eq!(names, ["甲公司", "乙公司"]);
    }
}
