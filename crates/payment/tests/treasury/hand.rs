//! An approved order at 40 WAIT_PAY written by hand, and a treasury that says what a test tells it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use counterfoil_e2e::TestApp;
use counterfoil_payment::treasury::batch_creation::{BatchCreation, Created, Target};
use counterfoil_payment::treasury::guard::DatabaseOnly;
use counterfoil_payment::treasury::notice::PushBatchNotify;
use counterfoil_payment::treasury::port::{
    Channels, Instruction, InstructionLine, LineFault, Message, PaymentChannel, PushAnswer,
    ReportEntry, Reported, ResultReport,
};
use counterfoil_payment::treasury::push::{PUSH_RETRY, PushRetry};
use counterfoil_payment::treasury::result::{self, Applied};
use counterfoil_payment::treasury::{TreasuryError, rules};
use counterfoil_protocol::{DataVersion, OrderId, SubmitRound, UserId};
use counterfoil_task::{Engine, EngineSettings, Kicker, Summary, check};

/// The strategy of all batches here.
pub const STRATEGY: &str = "scripted";
/// Who imports results and puts payees right.
pub const TREASURER: UserId = UserId(31);

/// Order 1, version 1, round 1.
pub const TARGET: Target =
    Target { order: OrderId(1), data: DataVersion(1), round: SubmitRound(1), payable_count: None };

/// One payable line; its id is 101 and up.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    pub company: i64,
    pub partner: i64,
    pub station: i64,
    pub amount: i64,
}

/// A line of company 1 and partner 7 at a station of its own.
pub fn line(station: i64, amount: i64) -> Line {
    Line { company: 1, partner: 7, station, amount }
}

/// Writes rows by hand into an app's database, and works on them.
#[derive(Debug, Clone, Copy)]
pub struct Hand<'a>(pub &'a TestApp);

impl<'a> Hand<'a> {
    /// Order 1 at 40 TREASURY with these lines, all locked; partner 7 splits by `rule`.
    pub async fn order(app: &'a TestApp, rule: &str, lines: &[Line]) -> Hand<'a> {
        let hand = Hand(app);
        let count = lines.len();
        app.execute(&format!(
            "INSERT INTO fi_resident_income_payment_order
               (id, order_no, status, current_publish_version, submit_round, payment_type,
                push_status, payable_count, create_user_id)
             VALUES (1, 'PO-1', 40, 1, 1, 'TREASURY', 'NOT_PUSHED', {count}, 7);
             \nINSERT INTO sys_partner (id, name, split_rule) VALUES (7, 'P7', '{rule}'),
               (8, 'P8', 'NONE');
             \nINSERT INTO sys_project_company (id, name, payer_account)
             VALUES (1, 'Company 1', 'PAYER1'), (2, 'Company 2', 'PAYER2')"
        ))
        .await;
        for (chunk, some) in lines.chunks(200).enumerate() {
            let first = 101 + i64::try_from(chunk * 200).expect("a small number");
            hand.lines(first, some).await;
        }
        hand
    }

    async fn lines(&self, first: i64, lines: &[Line]) {
        let rows = |row: &dyn Fn(i64, &Line) -> String| {
            let numbered = (first..).zip(lines);
            numbered.map(|(id, line)| row(id, line)).collect::<Vec<_>>().join(", ")
        };
        let accounts = rows(&|id, _| format!("({id}, 'Farmer {id}', 'ACC{id}', 'Bank', 1)"));
        let bills = rows(&|id, line| format!("({id}, 'S{}', '202609', {id})", line.station));
        let formal = rows(&|id, line| {
            let Line { company, partner, station, amount } = line;
            format!(
                "({id}, 1, 1, 1, 10, 20, 'S{station}', '202609', {id}, {amount}, {company},
                  {partner}, 'Farmer {id}', 'ACC{id}', 'Bank')"
            )
        });
        let locks = rows(&|id, line| {
            format!(
                "('S{}:{id}', 'ACTIVE', 1, {id}, 1, 1, 'S{}', '202609')",
                line.station, line.station
            )
        });
        self.0
            .execute(&format!(
                "INSERT INTO fi_customer_account (id, holder_name, account_no, bank_name, status)
                 VALUES {accounts};
                 \nINSERT INTO fi_customer_bill
                   (id, station_id, bill_yearmonth, customer_account_id) VALUES {bills};
                 \nINSERT INTO fi_resident_income_payment_order_bill
                   (id, payment_order_id, data_version, submit_round, line_type, line_status,
                    station_id, bill_yearmonth, small_bill_id, pay_amount, project_company_id,
                    partner_id, payee_name, payee_account, payee_bank) VALUES {formal};
                 \nINSERT INTO fi_resident_income_payment_bill_lock
                   (lock_key, lock_status, payment_order_id, order_bill_id, data_version,
                    submit_round, station_id, bill_yearmonth) VALUES {locks}"
            ))
            .await;
    }

    /// Creates the batches without a task.
    pub async fn create(&self) -> Result<Created, TreasuryError> {
        self.create_of(TARGET).await
    }

    /// The same for a caller that knows how many lines were approved.
    pub async fn create_of(&self, target: Target) -> Result<Created, TreasuryError> {
        creation().create(&self.0.db, &Kicker::none(), target).await
    }

    /// Batches in the order of their ids: company, split key, details, total.
    pub async fn batches(&self) -> Vec<String> {
        let query = "SELECT project_company_id, split_key, detail_count, total_amount
            FROM fi_resident_income_payment_push_batch WHERE deleted = 0 ORDER BY id";
        self.0.lines(query).await
    }

    /// The status of batch, order's push status, and each detail by its line.
    pub async fn standing(&self) -> Vec<String> {
        let mut lines = self
            .0
            .lines("SELECT status FROM fi_resident_income_payment_push_batch ORDER BY id")
            .await;
        let order = "SELECT status, push_status FROM fi_resident_income_payment_order";
        lines.extend(self.0.lines(order).await);
        let details = "SELECT d.order_bill_id, d.push_status, d.pay_status, l.line_status
            FROM fi_resident_income_payment_push_batch_detail d
            JOIN fi_resident_income_payment_order_bill l ON l.id = d.order_bill_id ORDER BY d.id";
        lines.extend(self.0.lines(details).await);
        lines
    }

    /// The one batch's id.
    pub async fn batch(&self) -> i64 {
        let id = "SELECT id FROM fi_resident_income_payment_push_batch";
        self.0.value(id).await.parse().expect("an id")
    }

    /// The id of the detail of a line.
    pub async fn detail(&self, line: i64) -> i64 {
        let query = format!(
            "SELECT id FROM fi_resident_income_payment_push_batch_detail
             WHERE order_bill_id = {line}"
        );
        self.0.value(&query).await.parse().expect("an id")
    }

    /// The message of the newest push.
    pub async fn message(&self) -> String {
        let query = "SELECT message_id FROM fi_resident_income_payment_push
            WHERE id = (SELECT MAX(id) FROM fi_resident_income_payment_push)";
        self.0.value(query).await
    }

    /// A report about the newest push that says this of lines.
    pub async fn report(&self, id: &str, said: &[(i64, Reported)]) -> ResultReport {
        let message_id = self.message().await;
        let mut entries = Vec::new();
        for (line, status) in said {
            entries.push(ReportEntry {
                end_to_end_id: self.reference(*line).await,
                status: *status,
                amount: None,
                reason_code: Some("AC04".into()),
                reason: Some("closed account".into()),
            });
        }
        ResultReport { report_id: id.into(), message_id, group: None, entries }
    }

    /// The line's id in the newest push.
    pub async fn reference(&self, line: i64) -> String {
        let query = format!(
            "SELECT i.end_to_end_id FROM fi_resident_income_payment_push_item i
             JOIN fi_resident_income_payment_push_batch_detail d
               ON d.id = i.push_batch_detail_id AND d.order_bill_id = {line}
             WHERE i.push_id = (SELECT MAX(id) FROM fi_resident_income_payment_push)"
        );
        self.0.value(&query).await
    }

    /// Applies a report as a file whose content is its id.
    pub async fn import(&self, report: &ResultReport) -> Result<Applied, TreasuryError> {
        let content = report.report_id.as_bytes();
        result::import(&self.0.db, report, content, TREASURER).await
    }

    /// One round of paymentPushBatchPushRetry.
    pub async fn push_round(&self, channel: &Scripted) -> Summary {
        let engine = engine(self.0, channel);
        engine.round(PUSH_RETRY.handler, "").await.expect("a round")
    }

    /// Every rule holds, but for those named.
    pub async fn rules_hold_but(&self, named: &[&str]) {
        for rule in rules::RULES.iter().filter(|rule| !named.contains(&rule.name)) {
            let breach = check(&self.0.db, rule).await;
            assert_eq!(breach.unwrap_or_else(|e| panic!("{}: {e:?}", rule.name)), None);
        }
    }
}

/// Batches for the scripted treasury.
pub fn creation() -> BatchCreation {
    BatchCreation::new(STRATEGY, Arc::new(DatabaseOnly))
}

/// The channels of a scripted treasury.
pub fn channels(channel: &Scripted) -> Channels {
    Channels::default().with(STRATEGY, Arc::new(channel.clone()))
}

/// An engine that pushes to a scripted treasury.
pub fn engine(app: &TestApp, channel: &Scripted) -> Engine {
    Engine::new(app.db.clone(), EngineSettings::default())
        .with(PushBatchNotify::in_process(channels(channel)))
        .with_turns(PushRetry::new(channels(channel)))
}

/// A treasury that says what a test tells it, and remembers what it was sent.
#[derive(Debug, Clone, Default)]
pub struct Scripted(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    idempotent: bool,
    sends: VecDeque<PushAnswer>,
    inquiries: VecDeque<PushAnswer>,
    sent: Vec<Message>,
    asked: Vec<String>,
}

impl Scripted {
    /// Declared to take identical bytes twice.
    pub fn idempotent() -> Scripted {
        let channel = Scripted::default();
        channel.script().idempotent = true;
        channel
    }

    /// What the next push is answered; without any, it is accepted.
    pub fn answers(&self, answer: PushAnswer) -> &Scripted {
        self.script().sends.push_back(answer);
        self
    }

    /// What the next status query is answered; without any, there is no verdict.
    pub fn tells(&self, answer: PushAnswer) -> &Scripted {
        self.script().inquiries.push_back(answer);
        self
    }

    /// The messages it was sent.
    pub fn sent(&self) -> Vec<Message> {
        self.script().sent.clone()
    }

    /// The messages it was asked about.
    pub fn asked(&self) -> Vec<String> {
        self.script().asked.clone()
    }

    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.0.lock().expect("no test panics while holding it")
    }
}

/// Accepted without a word about lines.
pub fn accepted() -> PushAnswer {
    PushAnswer::Accepted { reference: Some("T-1".into()), entries: Vec::new() }
}

/// Certainly not accepted.
pub fn refused() -> PushAnswer {
    PushAnswer::Refused { code: "closed".into(), message: "the treasury is closed".into() }
}

/// No verdict.
pub fn unknown() -> PushAnswer {
    PushAnswer::Unknown { message: "no answer in time".into() }
}

#[async_trait::async_trait]
impl PaymentChannel for Scripted {
    fn is_idempotent(&self) -> bool {
        self.script().idempotent
    }

    fn fault(&self, line: &InstructionLine) -> Option<LineFault> {
        let broken = line.payee_name.contains('\u{7}');
        broken.then(|| LineFault { code: "payee-characters", message: "a bell".into() })
    }

    fn render(&self, instruction: &Instruction) -> String {
        format!("{instruction:?}")
    }

    async fn send(&self, message: &Message) -> PushAnswer {
        let mut script = self.script();
        script.sent.push(message.clone());
        script.sends.pop_front().unwrap_or_else(accepted)
    }

    async fn inquire(&self, message: &Message) -> PushAnswer {
        let mut script = self.script();
        script.asked.push(message.message_id.clone());
        script.inquiries.pop_front().unwrap_or_else(unknown)
    }
}
