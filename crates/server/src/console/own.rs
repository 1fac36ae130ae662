//! One's own account: who one is, and one's password.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect};
use counterfoil_account::audit::Deed;
use counterfoil_account::sign_in::{Attempt, confirm};
use counterfoil_account::{Cost, people};
use maud::html;

use super::Console;
use super::act::audited;
use super::door::{Posted, SESSION_COOKIE, Visitor, set_cookie, with_cookie};
use super::parts;
use super::shell::{Answer, Page, Room, Trouble, proof};

pub(super) async fn show(State(_console): State<Console>, visitor: Visitor) -> Answer {
    let lang = visitor.lang();
    let account = &visitor.account;
    let body = html! {
        h1 { (lang.own_account()) }
        div class="card" { (parts::facts(&[
            (lang.login(), html! { span class="mono" { (account.login) } }),
            (lang.who(), html! { (account.name) }),
            (lang.person_id(), html! { span class="mono" { (account.id) } }),
            (lang.role(), html! { (account.role) }),
            (lang.password_since(), parts::time(account.password_time)),
        ])) }
        h2 { (lang.new_password()) }
        form method="post" action="/console/me" class="confirm card" {
            (proof(&visitor))
            p class="quiet" { (lang.password_terms()) }
            label { span { (lang.old_password()) }
                input type="password" name="old" required maxlength="512"
                    autocomplete="current-password"; }
            label { span { (lang.new_password()) }
                input type="password" name="new" required minlength="12" maxlength="512"
                    autocomplete="new-password"; }
            label { span { (lang.again()) }
                input type="password" name="again" required maxlength="512"
                    autocomplete="new-password"; }
            div class="actions" {
                button class="primary" type="submit" { (lang.new_password()) }
            }
        }
    };
    Ok(Page::new(Room::Own, lang.own_account(), body).shown_to(&visitor))
}

/// All of the person's sessions end with the old password, this one too.
pub(super) async fn password(
    State(console): State<Console>,
    visitor: Visitor,
    posted: Posted,
) -> Answer {
    let (old, new) = (posted.as_typed("old"), posted.as_typed("new"));
    if new != posted.as_typed("again") {
        return Err(Trouble::invalid(visitor.lang().not_the_same()));
    }
    let account = &visitor.account;
    let deed = Deed { action: "password-change", subject: &account.login, reason: "" };
    let work = async {
        let address = &visitor.asked.address;
        let attempt = Attempt { login: &account.login, password: old, address };
        confirm(&console.db, account, attempt).await?;
        people::set_password(&console.db, &account.login, new, Cost::Full).await?;
        Ok(((), String::new()))
    };
    audited(&console, &visitor, deed, work).await?;
    let response = Redirect::to("/console/sign-in?out=1").into_response();
    Ok(with_cookie(response, &set_cookie(&console, SESSION_COOKIE, "", 0)))
}
