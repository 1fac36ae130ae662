//! Accounts and what people did: for admins.

use axum::extract::{Path, Query, State};
use counterfoil_account::audit::{self, Deed, Entry};
use counterfoil_account::people::{self, Change, Newcomer};
use counterfoil_account::{Account, Cost, Role};
use maud::{Markup, html};
use serde::Deserialize;

use super::Console;
use super::act::audited;
use super::door::{Posted, Visitor};
use super::looks::Look;
use super::parts;
use super::shell::{Answer, Page, Room, Trouble, back_to, proof};
use super::texts::Lang;
use crate::api::place_of;

/// Rows of a page.
const PAGE: u32 = 50;

/// Where the page begins.
#[derive(Debug, Default, Deserialize)]
pub(super) struct From {
    #[serde(default)]
    cursor: String,
}

pub(super) async fn list(
    State(console): State<Console>,
    visitor: Visitor,
    Query(From { cursor }): Query<From>,
) -> Answer {
    let (lang, after) = (visitor.lang(), place_of(&cursor));
    let mut found = people::list(&console.db, after.unwrap_or(0), PAGE + 1).await?;
    let is_more = found.len() > PAGE as usize;
    found.truncate(PAGE as usize);
    let next = found.last().map(|account| account.id).filter(|_| is_more);
    let body = html! {
        h1 { (lang.accounts()) }
        p class="lede" { (lang.accounts_lede()) }
        div class="card wide" { table class="stack" {
            thead { tr {
                th { (lang.login()) } th { (lang.who()) } th { (lang.person_id()) }
                th { (lang.role()) } th { (lang.status()) } th { (lang.password_since()) } th {}
            } }
            tbody { @for account in &found { (row(&visitor, account)) } }
        } }
        (parts::pager(lang, "/console/accounts", &[], next, after.is_none()))
        (add_form(&visitor))
    };
    Ok(Page::new(Room::Accounts, lang.accounts(), body).shown_to(&visitor))
}

fn row(visitor: &Visitor, account: &Account) -> Markup {
    let lang = visitor.lang();
    html! {
        tr {
            td data-label=(lang.login()) class="mono" { (account.login) }
            td data-label=(lang.who()) { (account.name) }
            td data-label=(lang.person_id()) class="mono" { (account.id) }
            td data-label=(lang.role()) { (account.role) }
            td data-label=(lang.status()) {
                @if account.disabled { (parts::state(Look::NotYet, lang.disabled())) }
                @else { (parts::state(Look::Done, lang.enabled())) }
            }
            td data-label=(lang.password_since()) { (parts::time(account.password_time)) }
            td { (change_form(visitor, account)) }
        }
    }
}

fn role_choice(lang: Lang, chosen: Role) -> Markup {
    html! {
        label { span { (lang.role()) } select name="role" {
            @for role in Role::ALL {
                option value=(role) selected[role == chosen] { (role) }
            }
        } }
    }
}

fn change_form(visitor: &Visitor, account: &Account) -> Markup {
    let lang = visitor.lang();
    let path = format!("/console/accounts/{}", parts::escaped(&account.login));
    html! {
        details id={ "change-" (account.id) } {
            summary { (lang.change()) }
            form method="post" action=(path) class="confirm" {
                (proof(visitor))
                (role_choice(lang, account.role))
                label { span { (lang.new_password()) }
                    input type="password" name="password" maxlength="512" minlength="12"
                        autocomplete="new-password"; }
                label { span { (lang.reason()) }
                    input type="text" name="reason" required maxlength="500"; }
                div class="actions" {
                    button type="submit" name="what" value="role" { (lang.change_role()) }
                    button type="submit" name="what" value="password" { (lang.new_password()) }
                    @if account.disabled {
                        button type="submit" name="what" value="enable" { (lang.enable()) }
                    } @else {
                        button class="danger" type="submit" name="what" value="disable" {
                            (lang.disable())
                        }
                    }
                }
            }
        }
    }
}

fn add_form(visitor: &Visitor) -> Markup {
    let lang = visitor.lang();
    html! {
        h2 { (lang.new_account()) }
        form method="post" action="/console/accounts" class="confirm card" {
            (proof(visitor))
            (parts::field("login", lang.login(), ""))
            (parts::field("name", lang.who(), ""))
            (parts::field("id", lang.person_id_hint(), ""))
            (role_choice(lang, Role::Viewer))
            label { span { (lang.password()) }
                input type="password" name="password" required minlength="12" maxlength="512"
                    autocomplete="new-password"; }
            label { span { (lang.reason()) }
                input type="text" name="reason" required maxlength="500"; }
            div class="actions" {
                button class="primary" type="submit" { (lang.new_account()) }
            }
        }
    }
}

fn role_of(posted: &Posted) -> Result<Role, Trouble> {
    posted.field("role").parse().map_err(|why| Trouble::invalid(format!("role: {why}")))
}

pub(super) async fn add(
    State(console): State<Console>,
    visitor: Visitor,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let id = match posted.field("id") {
        "" => None,
        typed => Some(typed.parse().map_err(|_| Trouble::invalid("id: must be a number"))?),
    };
    let new = Newcomer {
        id,
        login: posted.field("login").to_owned(),
        name: posted.field("name").to_owned(),
        role: role_of(&posted)?,
        password: posted.as_typed("password").to_owned(),
    };
    let deed = Deed { action: "account-add", subject: &new.login, reason };
    let work = async {
        let added = people::add(&console.db, &new, Cost::Full).await?;
        Ok(((), format!("person {}, {}", added.id, added.role)))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, "/console/accounts"))
}

pub(super) async fn change(
    State(console): State<Console>,
    visitor: Visitor,
    Path(login): Path<String>,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let (action, change) = match posted.field("what") {
        "role" => ("account-role", Some(Change::Role(role_of(&posted)?))),
        "disable" => ("account-disable", Some(Change::Disable)),
        "enable" => ("account-enable", Some(Change::Enable)),
        "password" => ("account-password", None),
        _ => return Err(Trouble::invalid("what: role, password, enable or disable")),
    };
    let deed = Deed { action, subject: &login, reason };
    let work = async {
        let changed = match change {
            Some(change) => people::change(&console.db, &login, change).await?,
            None => {
                let password = posted.as_typed("password");
                people::set_password(&console.db, &login, password, Cost::Full).await?
            }
        };
        let state = if changed.disabled { "disabled" } else { "enabled" };
        Ok(((), format!("{}, {state}", changed.role)))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, "/console/accounts"))
}

pub(super) async fn audit(
    State(console): State<Console>,
    visitor: Visitor,
    Query(From { cursor }): Query<From>,
) -> Answer {
    let (lang, before) = (visitor.lang(), place_of(&cursor));
    let mut found = audit::list(&console.db, before, PAGE + 1).await?;
    let is_more = found.len() > PAGE as usize;
    found.truncate(PAGE as usize);
    let next = found.last().map(|entry| entry.id).filter(|_| is_more);
    let body = html! {
        h1 { (lang.audit()) }
        p class="lede" { (lang.audit_lede()) }
        div class="card wide" { (entries(lang, &found)) }
        (parts::pager(lang, "/console/audit", &[], next, before.is_none()))
    };
    Ok(Page::new(Room::Audit, lang.audit(), body).live().shown_to(&visitor))
}

fn entries(lang: Lang, found: &[Entry]) -> Markup {
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.time()) } th { (lang.who()) } th { (lang.what()) }
                th { (lang.subject()) } th { (lang.reason()) } th { (lang.outcome()) }
                th { (lang.reference()) }
            } }
            tbody { @for entry in found {
                tr {
                    td data-label=(lang.time()) { (parts::time(entry.time)) }
                    td data-label=(lang.who()) {
                        (entry.login) " · " (entry.role) br;
                        small class="mono" { (entry.address) }
                    }
                    td data-label=(lang.what()) class="mono" { (entry.action) }
                    td data-label=(lang.subject()) class="mono" { (entry.subject) }
                    td data-label=(lang.reason()) class="words" { (entry.reason) }
                    td data-label=(lang.outcome()) class="words" {
                        (parts::stored(lang, &entry.outcome)) " " (entry.detail)
                    }
                    td data-label=(lang.reference()) class="mono" { (entry.request_id) }
                }
            } }
        }
    }
}
