//! The filters of the list of jobs. They are in the page's address, under the names that the API has for them.

use maud::{Markup, html};

use super::path;
use crate::{
    client::Query,
    layout::kind,
    model::{ClusterList, Text},
};

/// The parameters of `GET /jobs` that the page passes on.
const NAMES: [&str; 8] =
    ["status", "cluster", "label", "network_arch", "action", "created_after", "created_before", "page_token"];
/// What people look for.
const STATUSES: [&str; 6] = ["Pending", "Running", "Error", "Done", "Canceled", "Paused"];

pub(super) struct Filters(Query);

impl Filters {
    pub(super) fn of(query: &Query) -> Self {
        Self(query.only(&NAMES))
    }

    pub(super) fn query(&self) -> Query {
        self.0.clone()
    }

    /// Those without the page's place in the list.
    fn lasting(&self) -> Query {
        self.0.clone().without("page_token")
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lasting().pairs().next().is_none()
    }

    /// The filters in use, each with a way to end it.
    pub(super) fn chosen(&self) -> Markup {
        let lasting = self.lasting();
        html! {
            @if !self.is_empty() {
                ul.chosen aria-label="Filters in use" {
                    @for (name, value) in lasting.pairs() {
                        li {
                            a href=(lasting.without_pair(name, value).after(&path())) aria-label={ "Remove the filter " (name) " " (Text::from(value).plain()) } {
                                (name) ": " (Text::from(value)) span aria-hidden="true" { " ×" }
                            }
                        }
                    }
                    li { a href=(path()) { "Clear" } }
                }
            }
        }
    }

    /// The choices beside the list.
    pub(super) fn side(&self, clusters: &ClusterList) -> Markup {
        html! {
            nav.side aria-label="Filters" {
                (self.group("status", "Status", STATUSES.iter().map(|status| Text::from(*status))))
                @if clusters.clusters.len() > 1 {
                    (self.group("cluster", "Cluster", clusters.clusters.iter().map(|cluster| cluster.name.clone())))
                }
                form.label-filter method="get" action=(path()) {
                    @for (name, value) in self.lasting().without("label").pairs() {
                        input type="hidden" name=(name) value=(value);
                    }
                    label for="label" { "Label" }
                    input #label name="label" placeholder="key:value" pattern="[^:]+:.*" value=[self.0.one("label")];
                }
            }
        }
    }

    fn group(&self, name: &str, title: &str, values: impl Iterator<Item = Text>) -> Markup {
        let lasting = self.lasting();
        let current = lasting.one(name).map(str::to_owned);
        html! {
            section {
                h2 { (title) }
                ul {
                    @for value in values {
                        @let is_current = current.as_deref() == Some(value.raw());
                        @let others = lasting.clone().without(name);
                        @let to = if is_current { others } else { others.with(name, value.raw()) };
                        li {
                            a.facet href=(to.after(&path())) aria-current=[is_current.then_some("true")] {
                                @if name == "status" { span class={ "dot " (kind(value.raw()).class()) } {} }
                                (value)
                            }
                        }
                    }
                }
            }
        }
    }
}
