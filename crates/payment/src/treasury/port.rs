//! What the treasury asks of whoever moves the money, and what comes back.

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_db::Instant;
use counterfoil_protocol::Fen;

/// One push, before it has bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Unique for ever, and the same whenever these bytes are sent again. At most 35 characters of
    /// letters, digits and `-`.
    pub message_id: String,
    /// The batch's number.
    pub batch_no: String,
    /// When the bytes were made.
    pub created: Instant,
    /// The day the payments are asked for, `YYYY-MM-DD` in Asia/Shanghai.
    pub pay_day: String,
    /// Whose account pays: the project company's name.
    pub payer_name: String,
    /// The account that pays.
    pub payer_account: String,
    /// What is to be paid, at least one line.
    pub lines: Vec<InstructionLine>,
}

/// One payment of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionLine {
    /// The detail.
    pub detail: i64,
    /// Unique for ever; what results refer to. Letters, digits and `-`, at most 35.
    pub end_to_end_id: String,
    /// Above zero.
    pub amount: Fen,
    /// Who is paid.
    pub payee_name: String,
    /// The payee's account number.
    pub payee_account: String,
    /// The payee's bank.
    pub payee_bank: String,
    /// What it is for: station and month.
    pub purpose: String,
}

/// Why one line cannot be sent by a channel. The others can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineFault {
    /// A stable code.
    pub code: &'static str,
    /// What a person reads.
    pub message: String,
}

/// The bytes of a push as they are stored, sent, and sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The push's id.
    pub message_id: String,
    /// The bytes.
    pub body: String,
    /// Their SHA-256, lower-case hexadecimal.
    pub sha256: String,
}

/// What the receiver said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushAnswer {
    /// The message was accepted.
    Accepted {
        /// The receiver's own reference.
        reference: Option<String>,
        /// What it said of single lines already. A line that is not named is accepted and no more.
        entries: Vec<ReportEntry>,
    },
    /// Certainly nothing was accepted.
    Refused {
        /// The receiver's code.
        code: String,
        /// Its message.
        message: String,
    },
    /// No verdict: accepted or not, nobody here knows.
    Unknown {
        /// What happened.
        message: String,
    },
}

/// One way to have payments made. Never called while a transaction is open.
#[async_trait::async_trait]
pub trait PaymentChannel: Send + Sync {
    /// Whether the receiver takes identical bytes under a known id for the same message. Only then
    /// is a message without a verdict ever sent again.
    fn is_idempotent(&self) -> bool;

    /// What keeps a line from being sent, if anything.
    fn fault(&self, line: &InstructionLine) -> Option<LineFault>;

    /// The bytes of a push whose lines have no fault. Pure: the same instruction, the same bytes.
    fn render(&self, instruction: &Instruction) -> String;

    /// Sends a message.
    async fn send(&self, message: &Message) -> PushAnswer;

    /// Asks what became of a message.
    async fn inquire(&self, message: &Message) -> PushAnswer;
}

/// The configured channels by strategy.
#[derive(Clone, Default)]
pub struct Channels(BTreeMap<String, Arc<dyn PaymentChannel>>);

impl std::fmt::Debug for Channels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Channels {
    /// Adds the channel of a strategy.
    #[must_use]
    pub fn with(mut self, strategy: &str, channel: Arc<dyn PaymentChannel>) -> Channels {
        self.0.insert(strategy.to_owned(), channel);
        self
    }

    /// The channel of a strategy.
    pub fn get(&self, strategy: &str) -> Option<Arc<dyn PaymentChannel>> {
        self.0.get(strategy).cloned()
    }
}

/// What became of the payments of one message, from a file or an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultReport {
    /// The report's own id: the same report is never applied twice.
    pub report_id: String,
    /// The push it is about.
    pub message_id: String,
    /// What it says of the whole message.
    pub group: Option<GroupStatus>,
    /// What it says of single lines.
    pub entries: Vec<ReportEntry>,
}

/// What a report says of a whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStatus {
    /// As reported, such as `ACTC`.
    pub code: String,
    /// Whether all of it was refused.
    pub is_rejected: bool,
    /// The reason's code.
    pub reason_code: Option<String>,
    /// The reason.
    pub reason: Option<String>,
}

/// What a report says of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportEntry {
    /// The line's id in the push.
    pub end_to_end_id: String,
    /// What it means.
    pub status: Reported,
    /// The amount, where it is told.
    pub amount: Option<Fen>,
    /// The reason's code.
    pub reason_code: Option<String>,
    /// The reason.
    pub reason: Option<String>,
}

/// What became of one payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    /// Accepted and under way: no more.
    Pending,
    /// The money has arrived.
    Paid,
    /// It was refused, or came back.
    Rejected,
}

impl Reported {
    /// The stored value.
    pub fn as_str(self) -> &'static str {
        match self {
            Reported::Pending => "PENDING",
            Reported::Paid => "PAID",
            Reported::Rejected => "REJECTED",
        }
    }
}
