//! XXL-Job admins: where an executor registers and tells results. Source: xxl-job.md.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::{Client, Url};
use serde_json::{Value, json};

use crate::RemoteError;
use crate::review_centre::{cut, innermost};

/// How long one call may take: the protocol's own limit.
pub const MAX_ADMIN_TIME: Duration = Duration::from_secs(3);
/// Bytes of an admin's answer.
const MAX_ADMIN_ANSWER_BYTES: usize = 64 * 1024;
/// Characters of what an admin said that are told on.
const MAX_SAID: usize = 300;
/// The header that admins and executors know each other by.
pub const TOKEN_HEADER: &str = "XXL-JOB-ACCESS-TOKEN";
/// Which executor calls: admins from 3.5 on want it.
const APP_HEADER: &str = "XXL-JOB-APPNAME";

/// What came of one trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerResult {
    /// The admin's number of the trigger.
    pub log_id: i64,
    /// When it was triggered, in milliseconds, as the admin said.
    pub log_date_time: i64,
    /// 200 done, 500 failed, 502 out of time.
    pub code: i32,
    /// What a person reads.
    pub message: String,
}

impl TriggerResult {
    /// Both spellings of the trigger's time: 3.5 changes it.
    fn item(&self) -> Value {
        json!({
            "logId": self.log_id,
            "logDateTim": self.log_date_time, "logDateTime": self.log_date_time,
            "handleCode": self.code, "handleMsg": self.message,
        })
    }
}

/// Results that no admin took in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untaken {
    /// Whether one of them was there to refuse them.
    pub is_answered: bool,
    /// Why, of each in turn.
    pub message: String,
}

/// One admin.
struct Admin {
    base: Url,
    /// Whether it wants results wrapped in an object, as 3.5 does: learned from its answers.
    wants_wrapped: AtomicBool,
}

/// Several admins of one house, tried in turn. The token is never logged.
pub struct XxlAdmins {
    client: Client,
    admins: Vec<Admin>,
    token: String,
    app_name: String,
}

impl std::fmt::Debug for XxlAdmins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hosts: Vec<_> = self.admins.iter().filter_map(|admin| admin.base.host_str()).collect();
        f.debug_struct("XxlAdmins").field("hosts", &hosts).finish_non_exhaustive()
    }
}

impl XxlAdmins {
    /// The admins at `addresses`, each with its path, such as `http://host/xxl-job-admin`.
    ///
    /// # Errors
    /// An address that is no http or https URL, or no client can be built.
    pub fn new(
        addresses: &[String],
        token: &str,
        app_name: &str,
    ) -> Result<XxlAdmins, RemoteError> {
        const WHAT: &str = "XXL-Job admin";
        let mut admins = Vec::new();
        for address in addresses {
            let text = format!("{}/", address.trim_end_matches('/'));
            let wrong = |why: String| RemoteError::Address { what: WHAT, why };
            let base = Url::parse(&text).map_err(|error| wrong(error.to_string()))?;
            if !matches!(base.scheme(), "http" | "https") {
                return Err(wrong(format!("its scheme is {}", base.scheme())));
            }
            admins.push(Admin { base, wants_wrapped: AtomicBool::new(false) });
        }
        let builder = Client::builder()
            .timeout(MAX_ADMIN_TIME)
            .connect_timeout(MAX_ADMIN_TIME)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        // Plain HTTP must work on a machine without any certificate too.
        let is_plain = admins.iter().all(|admin| admin.base.scheme() == "http");
        let builder = if is_plain { builder.tls_certs_only([]) } else { builder };
        let client = builder.build();
        let client = client.map_err(|source| RemoteError::Client { what: WHAT, source })?;
        let (token, app_name) = (token.to_owned(), app_name.to_owned());
        Ok(XxlAdmins { client, admins, token, app_name })
    }

    /// Says that the executor is reachable at `value`. Dead for the admin after 90 s.
    ///
    /// # Errors
    /// Why no admin took it in, each in turn.
    pub async fn register(&self, value: &str) -> Result<(), String> {
        self.in_turn("api/registry", &self.registration(value)).await
    }

    /// Says that the executor is gone.
    ///
    /// # Errors
    /// Why no admin took it in.
    pub async fn deregister(&self, value: &str) -> Result<(), String> {
        self.in_turn("api/registryRemove", &self.registration(value)).await
    }

    fn registration(&self, value: &str) -> Value {
        json!({
            "registryGroup": "EXECUTOR", "registryKey": self.app_name, "registryValue": value,
        })
    }

    async fn in_turn(&self, path: &str, body: &Value) -> Result<(), String> {
        let mut troubles = Vec::new();
        for admin in &self.admins {
            match self.post(admin, path, body).await {
                Ok(()) => return Ok(()),
                Err(trouble) => troubles.push(admin.named(&trouble)),
            }
        }
        Err(troubles.join("; "))
    }

    /// Tells results. Accepted is not recorded: an admin ignores a second result of a trigger.
    ///
    /// # Errors
    /// Why no admin took them in; they are to be told again.
    pub async fn tell(&self, results: &[TriggerResult]) -> Result<(), Untaken> {
        let list: Vec<Value> = results.iter().map(TriggerResult::item).collect();
        let bare = Value::Array(list.clone());
        let wrapped = json!({ "callbackList": list });
        let mut troubles = Vec::new();
        let mut is_answered = false;
        for admin in &self.admins {
            let first = admin.wants_wrapped.load(Ordering::Relaxed);
            for is_wrapped in [first, !first] {
                let body = if is_wrapped { &wrapped } else { &bare };
                match self.post(admin, "api/callback", body).await {
                    Ok(()) => {
                        admin.wants_wrapped.store(is_wrapped, Ordering::Relaxed);
                        return Ok(());
                    }
                    Err(trouble) => {
                        troubles.push(admin.named(&trouble));
                        if trouble.is_silent {
                            break; // another form would get no answer either
                        }
                        is_answered = true;
                    }
                }
            }
        }
        Err(Untaken { is_answered, message: troubles.join("; ") })
    }

    async fn post(&self, admin: &Admin, path: &str, body: &Value) -> Result<(), Trouble> {
        let url = admin.base.join(path).map_err(|_| Trouble::silent("its address has no paths"))?;
        let request = self
            .client
            .post(url)
            .header(TOKEN_HEADER, &self.token)
            .header(APP_HEADER, &self.app_name)
            .json(body);
        let no_answer = |error: &reqwest::Error| Trouble::silent(&innermost(error));
        let mut response = request.send().await.map_err(|error| no_answer(&error))?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| no_answer(&error))? {
            if bytes.len() + chunk.len() > MAX_ADMIN_ANSWER_BYTES {
                return Err(Trouble::said("its answer is too long"));
            }
            bytes.extend_from_slice(&chunk);
        }
        let answer: Option<Value> = serde_json::from_slice(&bytes).ok();
        let code = answer.as_ref().and_then(|answer| answer.get("code")).and_then(Value::as_i64);
        match code {
            Some(200) if status.is_success() => Ok(()),
            Some(code) => {
                let said = answer.as_ref().and_then(|answer| answer.get("msg")?.as_str());
                // An admin may quote the token that it does not know.
                let said = said.unwrap_or_default().replace(&self.token, "…");
                Err(Trouble::said(&format!("code {code}: {said}")))
            }
            None => Err(Trouble::said(&format!("it answered {status}, and no code"))),
        }
    }
}

impl Admin {
    /// The host only: an address may hold a password.
    fn named(&self, trouble: &Trouble) -> String {
        let host = self.base.host_str().unwrap_or_default();
        format!("{host}: {}", trouble.message)
    }
}

/// Why an admin did not take something in.
struct Trouble {
    /// Nobody answered.
    is_silent: bool,
    message: String,
}

impl Trouble {
    fn silent(message: &str) -> Trouble {
        Trouble { is_silent: true, message: cut(message, MAX_SAID) }
    }

    fn said(message: &str) -> Trouble {
        Trouble { is_silent: false, message: cut(message, MAX_SAID) }
    }
}
