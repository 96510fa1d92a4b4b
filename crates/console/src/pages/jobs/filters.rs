//! The filters of the list of jobs. They are in the page's address, under the names that the API has for them.

use maud::{Markup, html};

use super::path;
use crate::{
    client::Query,
    layout::kind,
    model::{Facet, Facets, Text},
};

/// The parameters of `GET /jobs` that the page passes on.
const NAMES: [&str; 13] = [
    "status",
    "cluster",
    "owner",
    "partition",
    "rule",
    "label",
    "q",
    "network_arch",
    "action",
    "created_after",
    "created_before",
    "sort",
    "page_token",
];
/// The fields whose values are counted.
const COUNTED: &str = "status,cluster,owner,partition,rule";
/// What people look for. These are shown without jobs, too.
const STATUSES: [&str; 6] = ["Pending", "Running", "Error", "Done", "Canceled", "Paused"];
/// The values of a field beside the list.
const SHOWN: usize = 12;
const ORDERS: [(&str, Option<&str>); 3] =
    [("newest", None), ("oldest", Some("created_at")), ("last finished", Some("-finished_at"))];

pub(super) struct Filters(Query);

impl Filters {
    pub(super) fn of(query: &Query) -> Self {
        Self(query.only(&NAMES))
    }

    pub(super) fn query(&self) -> Query {
        self.0.clone()
    }

    /// For the API: the filters, and the fields to count.
    pub(super) fn listing(&self) -> Query {
        self.query().with("facets", COUNTED)
    }

    /// Those without the page's place in the list.
    fn lasting(&self) -> Query {
        self.0.clone().without("page_token")
    }

    /// Those that leave out jobs.
    fn chosen_only(&self) -> Query {
        self.lasting().without("sort")
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chosen_only().pairs().next().is_none()
    }

    /// The filters in use, each with a way to end it.
    pub(super) fn chosen(&self) -> Markup {
        let lasting = self.lasting();
        html! {
            @if !self.is_empty() {
                ul.chosen aria-label="Filters in use" {
                    @for (name, value) in self.chosen_only().pairs() {
                        li {
                            a href=(lasting.without_pair(name, value).after(&path())) {
                                span.unseen { "Remove the filter " }
                                (name) ": " (Text::from(value)) span aria-hidden="true" { " ×" }
                            }
                        }
                    }
                    li { a href=(path()) { "Clear" } }
                }
            }
        }
    }

    pub(super) fn orders(&self) -> Markup {
        let others = self.lasting().without("sort");
        html! {
            nav.choice aria-label="Order" {
                @for (name, order) in ORDERS {
                    a href=(others.clone().with_if("sort", order).after(&path())) aria-current=[(self.0.one("sort") == order).then_some("true")] { (name) }
                }
            }
        }
    }

    /// A search while its text is written. The field outlives the renewals of the page.
    pub(super) fn search(&self) -> Markup {
        html! {
            form.search role="search" method="get" action=(path()) hx-get=(path()) hx-trigger="input delay:300ms, submit" hx-target="#live" hx-swap="morph" hx-replace-url="true" {
                @for (name, value) in self.lasting().without("q").pairs() {
                    input type="hidden" name=(name) value=(value);
                }
                label.unseen for="q" { "Search in names, labels and ids" }
                input #q type="search" name="q" maxlength="200" placeholder="Name, label or id" value=[self.0.one("q")] autocomplete="off" spellcheck="false" data-keep="";
            }
        }
    }

    /// The choices beside the list, with their numbers of jobs.
    pub(super) fn side(&self, facets: Option<&Facets>, is_admin: bool) -> Markup {
        html! {
            div.side {
                (self.search())
                nav aria-label="Filters" {
                    @if let Some(facets) = facets {
                        (self.group("status", "Status", &all_statuses(&facets.status), 0))
                        (self.group("rule", "Failure", &facets.rule, 0))
                        (self.group("cluster", "Cluster", &facets.cluster, 1))
                        (self.group("partition", "Partition", &facets.partition, 1))
                        @if is_admin { (self.group("owner", "Owner", &facets.owner, 1)) }
                    }
                }
            }
        }
    }

    /// The values of a field, unless there are so few that there is nothing to choose.
    fn group(&self, name: &str, title: &str, facets: &[Facet], too_few: usize) -> Markup {
        let is_used = self.0.one(name).is_some();
        html! {
            @if is_used || facets.len() > too_few {
                section {
                    h2 { (title) }
                    ul { @for facet in facets.iter().take(SHOWN) { li { (self.facet(name, facet)) } } }
                }
            }
        }
    }

    /// A value: its link adds it to the filters, or takes it away.
    fn facet(&self, name: &str, facet: &Facet) -> Markup {
        let (lasting, value) = (self.lasting(), facet.value.raw());
        let is_chosen = lasting.all(name).any(|other| other == value);
        let to = if is_chosen { lasting.without_pair(name, value) } else { lasting.with(name, value) };
        html! {
            a.facet href=(to.after(&path())) aria-current=[is_chosen.then_some("true")] {
                @if name == "status" { span class={ "dot " (kind(value).class()) } {} }
                span.value { (facet.value) }
                " " span.number { (facet.jobs) span.unseen { " jobs" } }
            }
        }
    }
}

/// The states that people look for, and any others that jobs have.
fn all_statuses(facets: &[Facet]) -> Vec<Facet> {
    let jobs =
        |status: &str| facets.iter().find(|facet| facet.value.raw() == status).map_or(0, |facet| facet.jobs);
    let known = STATUSES.iter().map(|status| Facet { value: Text::from(*status), jobs: jobs(status) });
    let others = facets.iter().filter(|facet| !STATUSES.contains(&facet.value.raw()));
    known.chain(others.cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facet(value: &str, jobs: u64) -> Facet {
        Facet { value: Text::from(value), jobs }
    }

    #[test]
    fn the_known_states_come_first_and_have_their_numbers() {
        let all = all_statuses(&[facet("Error", 3), facet("Canceling", 1)]);
        let shown: Vec<_> = all.iter().map(|facet| (facet.value.raw(), facet.jobs)).collect();
        assert_eq!(shown[2], ("Error", 3));
        assert_eq!((shown[0], shown[6]), (("Pending", 0), ("Canceling", 1)));
    }

    #[test]
    fn a_value_is_added_or_taken_away_and_leads_to_the_first_page() {
        let filters = Filters::of(&Query::parse("status=Error&status=Done&page_token=x&evil=1"));
        let link = |value| filters.facet("status", &facet(value, 1)).into_string();
        assert!(link("Error").contains("href=\"/ui/jobs?status=Done\""), "{}", link("Error"));
        assert!(
            link("Paused").contains("status=Error&amp;status=Done&amp;status=Paused\""),
            "{}",
            link("Paused")
        );
    }
}
