//! Clusters: their health, and what they have.

mod partitions;

use axum::{
    extract::Path,
    response::{Html, IntoResponse, Response},
};
use maud::{Markup, html};

use crate::{
    ROOT,
    client::{Failure, GET_CLUSTER, LIST_CLUSTERS, LIST_PARTITIONS, PREFLIGHT, Query, segment},
    frame::{Fields, Page, Visit, Wants, wakes},
    layout::{Section, ago, badge, button_form, facts, number, until},
    model::{Cluster, ClusterList, LoginHost, Moment, Poll, Preflight},
};

fn path(rest: &str) -> String {
    format!("{ROOT}/clusters{rest}")
}

pub(crate) async fn list(visit: Visit) -> Result<Response, Failure> {
    let list = visit.api.get(&LIST_CLUSTERS, &[], &Query::new()).await?;
    let live = table(visit.now, &list);
    let page = Page {
        title: "Clusters".to_owned(),
        section: Section::Clusters,
        wakes: Some(wakes(None)),
        live,
        fixed: None,
    };
    Ok(page.answer(&visit))
}

fn table(now: Moment, list: &ClusterList) -> Markup {
    html! {
        h1 { "Clusters" }
        @if list.clusters.is_empty() { p.empty { "The service has no cluster." } } @else {
            div.scroll tabindex="0" role="region" aria-label="Clusters" {
                table {
                    caption.unseen { "Clusters; the first one is the default" }
                    thead { tr { th scope="col" { "Cluster" } th scope="col" { "State" } th scope="col" { "Login hosts" } th scope="col" { "Last poll" } th scope="col" { "Active jobs" } th scope="col" { "Orphans" } } }
                    tbody {
                        @for cluster in &list.clusters {
                            tr {
                                th.name scope="row" {
                                    a href=(path(&format!("/{}", segment(cluster.name.raw())))) { (cluster.name) }
                                    @if cluster.is_default { span.hint { " default" } }
                                }
                                td { (badge(&cluster.state)) }
                                td { @for host in &cluster.login_hosts { span.field { (host.host) " " (badge(&host.state)) } " " } }
                                td.time { @if let Some(at) = cluster.poll.as_ref().and_then(|poll| poll.polled_on) { (ago(now, at)) } @else { span.hint { "never" } } }
                                td.number { @if let Some(poll) = &cluster.poll { (poll.active_jobs) } }
                                td.number { (cluster.orphans.count) }
                            }
                        }
                    }
                }
            }
        }
        @if !list.unusable.is_empty() {
            section.warnings {
                h2 { "Unusable clusters" }
                ul { @for cluster in &list.unusable { li { (cluster.name) ": " (cluster.reason) } } }
            }
        }
    }
}

pub(crate) async fn show(visit: Visit, Path(name): Path<String>) -> Result<Response, Failure> {
    let (names, none) = ([name.as_str()], Query::new());
    let (cluster, partitions) = tokio::join!(
        visit.api.get(&GET_CLUSTER, &names, &none),
        visit.api.get(&LIST_PARTITIONS, &names, &none)
    );
    let (cluster, partitions) = (cluster?, partitions?);
    let live = html! {
        (health(&visit, &cluster))
        (partitions::section(visit.now, &partitions))
        (orphans(visit.now, &cluster))
    };
    let wakes = Some(wakes(Some(("cluster", &name))));
    let page = Page {
        title: format!("Cluster {}", cluster.name.plain()),
        section: Section::Clusters,
        wakes,
        live,
        fixed: None,
    };
    Ok(page.answer(&visit))
}

fn health(visit: &Visit, cluster: &Cluster) -> Markup {
    let now = visit.now;
    let to = path(&format!("/{}/preflight", segment(cluster.name.raw())));
    html! {
        div.job-head {
            div.title-row { h1 { (cluster.name) } (badge(&cluster.state)) @if cluster.is_default { span.hint { "default" } } }
            div.actions role="group" aria-label="Actions" {
                a.button href=(Query::new().with("cluster", cluster.name.raw()).after(&format!("{ROOT}/jobs"))) { "Its jobs" }
                @if visit.who.may_write() { (button_form(&to, "Preflight", None, &[])) }
            }
        }
        @if let Some(why) = &cluster.unavailable { p.problem role="alert" { (why) } }
        div.columns {
            section { h2 { "Login hosts" } (hosts(now, cluster)) }
            section { h2 { "Polls" } @if let Some(poll) = &cluster.poll { (polls(now, poll)) } @else { p.hint { "The cluster was never polled." } } }
            section {
                h2 { "Load" }
                (facts([
                    ("User", Some(html! { code { (cluster.user) } })),
                    ("Directory", Some(html! { code { (cluster.base_results_dir) } })),
                    ("RPC budget", cluster.rpc_budget.as_ref().map(|budget| html! {
                        (budget.left) " of " (budget.burst) " left, " (budget.per_minute) " a minute, " (budget.spent_total) " made"
                    })),
                    ("SSH sessions", Some(html! { (cluster.ssh.sessions_open) " open, " (cluster.ssh.connects_total) " connects" })),
                    ("Commands", Some(html! { (cluster.ssh.commands_total) @if cluster.ssh.failures_total > 0 { ", " (cluster.ssh.failures_total) " failed" } })),
                ]))
            }
        }
    }
}

fn hosts(now: Moment, cluster: &Cluster) -> Markup {
    html! {
        @if cluster.breaker.raw() != "closed" { p.strong { "The breaker is " (cluster.breaker) ": connections are paused after failures." } }
        ul.plain { @for host in &cluster.login_hosts { li { (self::host(now, host)) } } }
    }
}

fn host(now: Moment, host: &LoginHost) -> Markup {
    html! {
        (badge(&host.state)) " " code { (host.host) }
        @if let Some(since) = host.since { span.hint { " since " (ago(now, since)) } }
        @if let Some(next) = host.next_attempt_on { span.hint { ", tried again " (until(now, next)) } }
        @if let Some(error) = &host.last_error { p.hint { "Last failure: " (error) } }
    }
}

fn polls(now: Moment, poll: &Poll) -> Markup {
    facts([
        (
            "Last",
            Some(
                html! { @if let Some(at) = poll.polled_on { (ago(now, at)) } @else { "never" } @if poll.stale { " " span.stale { "stale" } } },
            ),
        ),
        ("Interval", Some(html! { (number(&serde_json::Value::from(poll.interval_seconds))) " s" })),
        ("Active jobs", Some(html! { (poll.active_jobs) })),
        ("Missing jobs", (poll.missing_jobs > 0).then(|| html! { (poll.missing_jobs) })),
        ("Failures since", (poll.failures > 0).then(|| html! { (poll.failures) })),
        ("Last failure", poll.error.as_ref().map(|error| html! { (error) })),
    ])
}

fn orphans(now: Moment, cluster: &Cluster) -> Markup {
    html! {
        @if cluster.orphans.count > 0 {
            section {
                h2 { "Orphans" }
                p.hint { "Slurm jobs with a name of this service that belong to no active attempt: " (cluster.orphans.count) "." }
                div.scroll tabindex="0" role="region" aria-label="Orphans" {
                    table {
                        caption.unseen { "Orphans, oldest first" }
                        thead { tr { th scope="col" { "Slurm job" } th scope="col" { "Name" } th scope="col" { "State" } th scope="col" { "Seen" } th scope="col" { "Why" } } }
                        tbody {
                            @for orphan in &cluster.orphans.jobs {
                                tr { td { code { (orphan.slurm_job_id) } } td { code { (orphan.slurm_job_name) } } td { (orphan.slurm_state) } td.time { (ago(now, orphan.first_seen_on)) } td { (orphan.message) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Tests the cluster, and shows the checks where the notice is.
pub(crate) async fn preflight(
    visit: Visit,
    Path(name): Path<String>,
    Fields(_): Fields,
) -> Result<Response, Failure> {
    let preflight = visit.api.post(&PREFLIGHT, &[&name], None).await?;
    let shown = checks(visit.now, &preflight);
    if visit.wants == Wants::Page {
        let title = format!("Preflight of {}", crate::model::Text::new(name).plain());
        return Ok(
            Page { title, section: Section::Clusters, wakes: None, live: shown, fixed: None }.answer(&visit)
        );
    }
    Ok(Html(shown.into_string()).into_response())
}

fn checks(now: Moment, preflight: &Preflight) -> Markup {
    html! {
        section.preflight {
            h2 { "Preflight " (badge(&preflight.outcome)) " " span.hint { (ago(now, preflight.checked_on)) } }
            ul.plain {
                @for check in &preflight.checks {
                    li {
                        (badge(&check.outcome)) " " code { (check.id) } @if let Some(subject) = &check.subject { " " (subject) } " " (check.observed)
                        @if let Some(fix) = &check.fix { p.strong { (fix) } }
                    }
                }
            }
        }
    }
}
