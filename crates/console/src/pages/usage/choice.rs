//! What the page shows. It is in the page's address; the filters have the names that the API has for them.

use chrono::{SecondsFormat, TimeDelta};
use maud::{Markup, html};

use super::path;
use crate::{
    client::Query,
    model::{Moment, Text},
};

/// The filters that the page passes on, here and in links to the list of jobs.
const FILTERS: [&str; 4] = ["cluster", "owner", "partition", "label"];

/// The windows: the name in the address, the words, the days, and what a bucket is.
const WINDOWS: [(&str, &str, i64, &str); 5] = [
    ("1", "24 hours", 1, "hour"),
    ("7", "7 days", 7, "day"),
    ("30", "30 days", 30, "day"),
    ("90", "90 days", 90, "week"),
    ("365", "a year", 365, "week"),
];
/// The place of the usual one.
const USUAL: usize = 1;

const GROUPS: [(&str, &str); 5] = [
    ("cluster", "cluster"),
    ("partition", "partition"),
    ("owner", "owner"),
    ("status", "status"),
    ("rule", "failure"),
];

pub(super) struct Choice {
    filters: Query,
    window: usize,
    group: String,
}

impl Choice {
    pub(super) fn of(query: &Query) -> Self {
        let window = query.one("window").unwrap_or_default();
        let window = WINDOWS.iter().position(|(name, ..)| *name == window).unwrap_or(USUAL);
        let label = query.one("group_label").map(|key| format!("label:{key}"));
        let group = label.or_else(|| query.one("group_by").map(str::to_owned));
        Self { filters: query.only(&FILTERS), window, group: group.unwrap_or_else(|| "cluster".to_owned()) }
    }

    /// What a bucket is: `hour`, `day` or `week`.
    pub(super) fn bucket(&self) -> &'static str {
        WINDOWS[self.window].3
    }

    /// The key of the label whose values are the groups.
    pub(super) fn label(&self) -> Option<&str> {
        self.group.strip_prefix("label:")
    }

    /// What the groups are, in words.
    pub(super) fn group_name(&self) -> Text {
        let known = GROUPS.iter().find(|(name, _)| *name == self.group);
        Text::new(known.map_or(self.group.as_str(), |(_, words)| words))
    }

    fn windowed(&self, now: Moment) -> Query {
        let since = now - TimeDelta::days(WINDOWS[self.window].2);
        self.filters.clone().with("since", since.to_rfc3339_opts(SecondsFormat::Secs, true))
    }

    /// For the API: the figures that the page shows.
    pub(super) fn figures(&self, now: Moment) -> Query {
        self.windowed(now).with("group_by", &self.group).with("bucket", self.bucket())
    }

    /// For the API: the figures of each bucket alone.
    pub(super) fn course(&self, now: Moment) -> Query {
        self.windowed(now).with("bucket", self.bucket())
    }

    /// For the API: the figures of each rule.
    pub(super) fn failures(&self, now: Moment) -> Query {
        self.windowed(now).with("group_by", "rule")
    }

    /// An address below this page with the same window and filters.
    pub(super) fn address(&self, path: &str) -> String {
        self.filters.clone().with("window", WINDOWS[self.window].0).after(path)
    }

    /// The filter for the jobs of a group; none for a field that is no filter of figures.
    fn filter_of(&self, value: &str) -> Option<(&str, String)> {
        match self.label() {
            // The list splits a label at its first colon.
            Some(key) => (!key.contains(':')).then(|| ("label", format!("{key}:{value}"))),
            None => FILTERS.contains(&self.group.as_str()).then(|| (self.group.as_str(), value.to_owned())),
        }
    }

    /// This page for the jobs of one group.
    pub(super) fn only(&self, value: &str) -> Option<String> {
        let (name, value) = self.filter_of(value)?;
        let others = if name == "label" { self.filters.clone() } else { self.filters.clone().without(name) };
        Some(address(&others.without_pair(name, &value).with(name, value), self.window, &self.group))
    }

    /// The list of the jobs that failed by a rule, the last one first.
    pub(super) fn failed_jobs(&self, list: &str, rule: &str) -> String {
        self.filters
            .clone()
            .with("status", "Error")
            .with("rule", rule)
            .with("sort", "-finished_at")
            .after(list)
    }

    pub(super) fn windows(&self) -> Markup {
        html! {
            nav.choice aria-label="Window" {
                @for (place, (_, words, ..)) in WINDOWS.iter().enumerate() {
                    a href=(address(&self.filters, place, &self.group)) aria-current=[(place == self.window).then_some("true")] { (words) }
                }
            }
        }
    }

    pub(super) fn groups(&self, is_admin: bool) -> Markup {
        html! {
            div.actions {
                nav.choice aria-label="Groups" {
                    @for (name, words) in GROUPS.iter().filter(|(name, _)| is_admin || *name != "owner") {
                        a href=(address(&self.filters, self.window, name)) aria-current=[(*name == self.group).then_some("true")] { "by " (words) }
                    }
                }
                form method="get" action=(path()) {
                    @for (name, value) in self.filters.pairs() { input type="hidden" name=(name) value=(value); }
                    input type="hidden" name="window" value=(WINDOWS[self.window].0);
                    label for="group_label" { "by label " }
                    input #group_label name="group_label" maxlength="500" placeholder="team" value=[self.label()] autocomplete="off" spellcheck="false";
                    " " button { "Show" }
                }
            }
        }
    }

    /// The filters in use, each with a way to end it.
    pub(super) fn chosen(&self) -> Markup {
        html! {
            @if self.filters.pairs().next().is_some() {
                ul.chosen aria-label="Filters in use" {
                    @for (name, value) in self.filters.pairs() {
                        li {
                            a href=(address(&self.filters.without_pair(name, value), self.window, &self.group)) {
                                span.unseen { "Remove the filter " }
                                (name) ": " (Text::from(value)) span aria-hidden="true" { " ×" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// This page with another choice.
fn address(filters: &Query, window: usize, group: &str) -> String {
    filters.clone().with("window", WINDOWS[window].0).with("group_by", group).after(&path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(query: &str) -> Choice {
        Choice::of(&Query::parse(query))
    }

    fn now() -> Moment {
        "2026-11-28T10:00:00.5Z".parse().unwrap()
    }

    #[test]
    fn the_address_says_what_the_api_is_asked_for() {
        let asked = |query: &str| choice(query).figures(now()).after("/stats");
        assert_eq!(asked(""), "/stats?since=2026-11-21T10%3A00%3A00Z&group_by=cluster&bucket=day");
        assert_eq!(
            asked("window=365&group_by=owner&cluster=dgx&evil=1"),
            "/stats?cluster=dgx&since=2025-11-28T10%3A00%3A00Z&group_by=owner&bucket=week"
        );
        assert_eq!(
            asked("window=1&group_by=owner&group_label=a%26b"),
            "/stats?since=2026-11-27T10%3A00%3A00Z&group_by=label%3Aa%26b&bucket=hour"
        );
        assert_eq!(asked("window=-1"), asked("window=7"), "an unknown window is the usual one");
        assert_eq!(
            choice("label=team:vision&group_by=status").failures(now()).after("/stats"),
            "/stats?label=team%3Avision&since=2026-11-21T10%3A00%3A00Z&group_by=rule"
        );
    }

    #[test]
    fn a_group_leads_to_its_own_figures() {
        let only = |query: &str, value: &str| choice(query).only(value);
        assert_eq!(
            only("group_by=cluster&cluster=a&owner=ann", "b").as_deref(),
            Some("/ui/usage?owner=ann&cluster=b&window=7&group_by=cluster")
        );
        assert_eq!(
            only("group_label=team&label=x:y", "a&b").as_deref(),
            Some("/ui/usage?label=x%3Ay&label=team%3Aa%26b&window=7&group_by=label%3Ateam")
        );
        assert_eq!(only("group_label=a:b", "c"), None, "no filter can name this label");
        assert_eq!(only("group_by=rule", "oom"), None);
    }
}
