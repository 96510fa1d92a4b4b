//! The messages to a job's webhook.

use axum::response::Response;
use maud::{Markup, html};

use super::path;
use crate::{
    client::{Failure, JOB_WEBHOOK, Query},
    frame::{IdPath, Visit},
    layout::{ago, badge, button_form, clock, facts, until},
    model::{Moment, Webhook},
};

pub(crate) async fn webhook(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let job = super::read(&visit, &id).await?;
    let content = match visit.api.get(&JOB_WEBHOOK, &[&id], &Query::new()).await {
        Ok(webhook) => deliveries(visit.now, visit.who.may_write(), &id, &webhook),
        Err(failure) if failure.is("no_webhook") => html! { h2 { "Webhook" } p.empty { (failure.detail) } },
        Err(failure) => return Err(failure),
    };
    Ok(super::page(&visit, &job, "Webhook", &content))
}

fn deliveries(now: Moment, may_write: bool, id: &str, webhook: &Webhook) -> Markup {
    html! {
        h2 { "Webhook" }
        (facts([
            ("Receiver", Some(html! { code { (webhook.url) } })),
            ("To be sent", Some(html! { (webhook.pending) })),
            ("Given up", Some(html! { (webhook.dead) })),
            ("Next attempt", webhook.next_attempt_at.map(|at| until(now, at))),
        ]))
        @if !webhook.deliveries.is_empty() {
            div.scroll tabindex="0" role="region" aria-label="Messages" {
                table {
                    caption.unseen { "Messages, newest first" }
                    thead { tr { th scope="col" { "#" } th scope="col" { "Status changed" } th scope="col" { "State" } th scope="col" { "Attempts" } th scope="col" { "Answer" } th scope="col" { "Last attempt" } th scope="col" { "Delivered" } } }
                    tbody {
                        @for message in &webhook.deliveries {
                            tr {
                                td.number { (message.seq) }
                                td.time { (clock(message.created_at)) }
                                td { (badge(&message.state)) }
                                td.number { (message.attempts) }
                                td { @if let Some(status) = message.response_status { (status) " " } @if let Some(error) = &message.error { (error) } }
                                td.time { @if let Some(at) = message.last_attempt_at { (ago(now, at)) } }
                                td.time { @if let Some(at) = message.delivered_at { (ago(now, at)) } }
                            }
                        }
                    }
                }
            }
            @if may_write { (button_form(&path(id, "/do/redeliver"), "Send all again", Some("Send all messages again?"), &[])) }
        }
    }
}
