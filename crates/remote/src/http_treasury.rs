//! A treasury behind HTTP: a push is one POST under its own Idempotency-Key.
//!
//! The treasury answers 2xx with `{"reference":…,"lines":[{"endToEndId","status","amount",
//! "reasonCode","reason"}]}`; `GET <url>/<messageId>` answers the same. Only an answer of that form
//! is an acceptance, only a 4xx is a refusal, and 408, 409, 425 and 429 are no verdict.

use std::time::Duration;

use counterfoil_payment::treasury::port::{
    Instruction, InstructionLine, LineFault, Message, PaymentChannel, PushAnswer, ReportEntry,
    Reported,
};
use counterfoil_payment::treasury::result::MAX_ENTRIES;
use counterfoil_protocol::Fen;
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{MAX_CONNECT_TIME, RemoteError};

/// The strategy's name in `push_batch.strategy`.
pub const HTTP_TREASURY: &str = "http-treasury";
/// How long one call may take unless told otherwise.
pub const MAX_TREASURY_TIME: Duration = Duration::from_secs(60);
/// Bytes of an answer; a longer one is no verdict.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;
const MAX_MESSAGE: usize = 500;

/// The treasury behind an address. Bodies are never logged.
#[derive(Clone)]
pub struct HttpTreasury {
    client: Client,
    url: Url,
    idempotent: bool,
}

impl std::fmt::Debug for HttpTreasury {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let host = self.url.host_str().unwrap_or_default();
        f.debug_struct("HttpTreasury").field("host", &host).finish_non_exhaustive()
    }
}

impl HttpTreasury {
    /// A client for the treasury at `url`. `idempotent` = it takes identical bytes under a known
    /// Idempotency-Key for the same push; only then is a push without a verdict sent again.
    ///
    /// # Errors
    /// When `url` is no http or https URL, or no client can be built.
    pub fn new(
        url: &str,
        idempotent: bool,
        max_time: Duration,
    ) -> Result<HttpTreasury, RemoteError> {
        const WHAT: &str = "treasury";
        let wrong = |why: String| RemoteError::Address { what: WHAT, why };
        let url =
            Url::parse(url.trim_end_matches('/')).map_err(|error| wrong(error.to_string()))?;
        let builder = Client::builder()
            .timeout(max_time)
            .connect_timeout(MAX_CONNECT_TIME.min(max_time))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        let builder = match url.scheme() {
            "https" => builder.https_only(true),
            "http" => builder.tls_certs_only([]),
            other => return Err(wrong(format!("its scheme is {other}"))),
        };
        let client = builder.build();
        let client = client.map_err(|source| RemoteError::Client { what: WHAT, source })?;
        Ok(HttpTreasury { client, url, idempotent })
    }

    async fn answer(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<(StatusCode, Vec<u8>), Away> {
        let mut response = request.send().await.map_err(|error| Away::of(&error))?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| Away::of(&error))? {
            if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
                let what = format!("its answer ({status}) is longer than {MAX_ANSWER_BYTES} bytes");
                return Err(Away { certain: false, what });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok((status, bytes))
    }
}

/// No answer. `certain` = nothing can have arrived.
struct Away {
    certain: bool,
    what: String,
}

impl Away {
    fn of(error: &reqwest::Error) -> Away {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        let what = cut(&cause.to_string());
        if error.is_timeout() && !error.is_connect() {
            return Away { certain: false, what: format!("no answer in time: {what}") };
        }
        Away { certain: error.is_connect(), what }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_MESSAGE).collect()
}

#[async_trait::async_trait]
impl PaymentChannel for HttpTreasury {
    fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    fn fault(&self, line: &InstructionLine) -> Option<LineFault> {
        let broken = [&line.payee_name, &line.payee_account, &line.payee_bank];
        let control = broken.iter().any(|text| text.chars().any(char::is_control));
        control.then(|| LineFault {
            code: "payee-characters",
            message: "the payee holds a character that cannot be printed".into(),
        })
    }

    fn render(&self, instruction: &Instruction) -> String {
        let total: i64 = instruction.lines.iter().map(|line| line.amount.0).sum();
        let line = |line: &InstructionLine| {
            json!({
                "endToEndId": line.end_to_end_id, "amount": line.amount.0,
                "payeeName": line.payee_name, "payeeAccount": line.payee_account,
                "payeeBank": line.payee_bank, "purpose": line.purpose,
            })
        };
        json!({
            "messageId": instruction.message_id, "batchNo": instruction.batch_no,
            "createTime": instruction.created.to_rfc3339(), "currency": "CNY",
            "payerName": instruction.payer_name, "payerAccount": instruction.payer_account,
            "count": instruction.lines.len(), "total": total,
            "lines": instruction.lines.iter().map(line).collect::<Vec<_>>(),
        })
        .to_string()
    }

    async fn send(&self, message: &Message) -> PushAnswer {
        let request = self
            .client
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header("idempotency-key", &message.message_id)
            .body(message.body.clone());
        match self.answer(request).await {
            Ok((status, bytes)) => read_push(status, &bytes),
            Err(Away { certain: true, what }) => PushAnswer::Refused {
                code: "no-connection".into(),
                message: format!("nothing was sent: {what}"),
            },
            Err(Away { what, .. }) => PushAnswer::Unknown { message: what },
        }
    }

    /// Whatever is no acceptance is no verdict here: a push may still be on its way.
    async fn inquire(&self, message: &Message) -> PushAnswer {
        let url = format!("{}/{}", self.url.as_str().trim_end_matches('/'), message.message_id);
        match self.answer(self.client.get(url)).await {
            Ok((status, bytes)) => match read_push(status, &bytes) {
                PushAnswer::Refused { code, message } => {
                    PushAnswer::Unknown { message: format!("{code}: {message}") }
                }
                answer => answer,
            },
            Err(Away { what, .. }) => PushAnswer::Unknown { message: what },
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Accepted {
    reference: String,
    #[serde(default)]
    lines: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    end_to_end_id: String,
    status: String,
    amount: Option<i64>,
    reason_code: Option<String>,
    reason: Option<String>,
}

fn read_push(status: StatusCode, bytes: &[u8]) -> PushAnswer {
    let unclear = matches!(status.as_u16(), 408 | 409 | 425 | 429);
    if status.is_client_error() && !unclear {
        let body: Option<Value> = serde_json::from_slice(bytes).ok();
        let text = |name: &str| body.as_ref()?.get(name)?.as_str().map(cut);
        return PushAnswer::Refused {
            code: text("code").unwrap_or_else(|| format!("http-{}", status.as_u16())),
            message: text("detail").unwrap_or_else(|| format!("it answered {status}")),
        };
    }
    if !status.is_success() {
        return PushAnswer::Unknown { message: format!("it answered {status}") };
    }
    let Ok(accepted) = serde_json::from_slice::<Accepted>(bytes) else {
        return PushAnswer::Unknown {
            message: format!("it answered {status} without a reference"),
        };
    };
    let entries: Option<Vec<ReportEntry>> = accepted.lines.into_iter().map(entry).collect();
    match entries {
        Some(entries) if entries.len() <= MAX_ENTRIES => {
            PushAnswer::Accepted { reference: Some(cut(&accepted.reference)), entries }
        }
        // It was accepted; what it says of lines is not understood, and those stay unknown.
        _ => {
            PushAnswer::Accepted { reference: Some(cut(&accepted.reference)), entries: Vec::new() }
        }
    }
}

fn entry(line: Line) -> Option<ReportEntry> {
    let status = match line.status.as_str() {
        "ACCEPTED" | "PAYING" => Reported::Pending,
        "PAID" => Reported::Paid,
        "REJECTED" | "FAILED" => Reported::Rejected,
        _ => return None,
    };
    Some(ReportEntry {
        end_to_end_id: line.end_to_end_id,
        status,
        amount: line.amount.map(Fen),
        reason_code: line.reason_code,
        reason: line.reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reference_is_acceptance_and_only_a_certain_4xx_is_refusal() {
        let read = |status: u16, body: &str| {
            read_push(StatusCode::from_u16(status).unwrap(), body.as_bytes())
        };
        let accepted = |answer: &PushAnswer| matches!(answer, PushAnswer::Accepted { .. });
        let refused = |answer: &PushAnswer| matches!(answer, PushAnswer::Refused { .. });
        let unknown = |answer: &PushAnswer| matches!(answer, PushAnswer::Unknown { .. });
        assert!(accepted(&read(200, r#"{"reference":"T1"}"#)));
        assert!(accepted(&read(202, r#"{"reference":"T1","lines":[]}"#)));
        for body in ["", "{}", "[]", r#"{"reference":7}"#, "<html>"] {
            assert!(unknown(&read(200, body)), "{body}");
        }
        for status in [400, 401, 403, 404, 422] {
            assert!(refused(&read(status, "")), "{status}");
        }
        for status in [302, 408, 409, 425, 429, 500, 502, 503, 504] {
            assert!(unknown(&read(status, r#"{"reference":"T1"}"#)), "{status}");
        }
    }
}
