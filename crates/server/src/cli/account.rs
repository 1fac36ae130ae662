//! `counterfoil account`: who may sign in to the console, and as what. A password comes from the
//! terminal or from stdin, never from the command line, where others can read it.

use std::io::{BufRead, IsTerminal};

use anyhow::{Context, Result};
use counterfoil_account::people::{self, Change, Newcomer};
use counterfoil_account::{Account, Cost, Role};
use serde_json::{Value, json};

use super::output::table;
use super::{Output, Session};

/// What to do with accounts. LOGIN is what the person signs in with.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Adds an account; its password is asked for, or read from stdin
    Add {
        /// What the person signs in with
        login: String,
        /// viewer, operator, reviewer or admin
        #[arg(long)]
        role: Role,
        /// What others call the person [default: the login]
        #[arg(long, default_value = "")]
        name: String,
        /// The person's id, where orders and reviews know it already [default: a new one]
        #[arg(long)]
        id: Option<i64>,
    },
    /// Lists accounts, by id
    List {
        /// Only accounts after this id (the last one of the page before)
        #[arg(long, default_value_t = 0)]
        after: i64,
        /// Rows at most
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Keeps a person out, at once
    Disable {
        /// Whom
        login: String,
    },
    /// Lets a person in again
    Enable {
        /// Whom
        login: String,
    },
    /// Gives a person a new password, asked for or read from stdin; all his sessions end
    Password {
        /// Whom
        login: String,
    },
    /// Gives a person another role, at once
    Role {
        /// Whom
        login: String,
        /// viewer, operator, reviewer or admin
        role: Role,
    },
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let db = session.open_migrated().await?;
    match command {
        Command::Add { login, role, name, id } => {
            let new = Newcomer { id, login, name, role, password: password()? };
            let added = people::add(&db, &new, Cost::Full).await?;
            Ok(said(&added, "may sign in"))
        }
        Command::List { after, limit } => Ok(listed(&people::list(&db, after, limit).await?)),
        Command::Disable { login } => {
            Ok(said(&people::change(&db, &login, Change::Disable).await?, "is kept out"))
        }
        Command::Enable { login } => {
            Ok(said(&people::change(&db, &login, Change::Enable).await?, "may sign in again"))
        }
        Command::Password { login } => {
            let password = password()?;
            let changed = people::set_password(&db, &login, &password, Cost::Full).await?;
            Ok(said(&changed, "has a new password; all sessions have ended"))
        }
        Command::Role { login, role } => {
            Ok(said(&people::change(&db, &login, Change::Role(role)).await?, "has that role now"))
        }
    }
}

/// A password: typed twice on a terminal, one line of stdin otherwise.
fn password() -> Result<String> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        let mut line = String::new();
        stdin.lock().read_line(&mut line).context("no password on stdin")?;
        return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
    }
    let first = rpassword::prompt_password("Password: ").context("no password was typed")?;
    let again = rpassword::prompt_password("Once more: ").context("no password was typed")?;
    anyhow::ensure!(first == again, "the password was typed differently");
    Ok(first)
}

fn as_json(account: &Account) -> Value {
    json!({
        "userId": account.id, "login": account.login, "name": account.name,
        "role": account.role.as_str(), "disabled": account.disabled,
        "passwordTime": account.password_time, "createTime": account.create_time,
    })
}

fn said(account: &Account, what: &str) -> Output {
    let text = format!("{} ({}, person {}) {what}", account.login, account.role, account.id);
    Output::new(as_json(account), text)
}

fn listed(accounts: &[Account]) -> Output {
    let json: Vec<Value> = accounts.iter().map(as_json).collect();
    let row = |account: &Account| {
        vec![
            account.id.to_string(),
            account.login.clone(),
            account.name.clone(),
            account.role.to_string(),
            if account.disabled { "disabled" } else { "" }.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = accounts.iter().map(row).collect();
    let text = match rows.is_empty() {
        true => "there is no account: counterfoil account add LOGIN --role admin".to_owned(),
        false => table(&["ID", "LOGIN", "NAME", "ROLE", ""], &rows),
    };
    Output::new(json!({ "accounts": json }), text)
}
