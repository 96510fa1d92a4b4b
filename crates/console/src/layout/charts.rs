//! Charts: their data, and their place in a page.
//!
//! `charts.js` turns an element with `data-chart`, the address of such data, into charts.

use maud::{Markup, html};
use serde::Serialize;

/// The charts of one place.
#[derive(Debug, Serialize)]
pub(crate) struct Charts {
    pub(crate) charts: Vec<Chart>,
    /// What is missing, in sentences.
    pub(crate) notes: Vec<String>,
}

/// One chart. Its texts are shown as texts.
#[derive(Debug, Serialize)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) axis: Axis,
    pub(crate) curves: Vec<Curve>,
    pub(crate) note: Option<String>,
}

/// One line of a chart. `x` and `y` have the same length.
#[derive(Debug, Serialize)]
pub(crate) struct Curve {
    pub(crate) name: String,
    /// What it means to the owner of jobs, if anything: the class of a [`Kind`](super::Kind), by which it has its colour.
    pub(crate) kind: Option<&'static str>,
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
}

/// What is from left to right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Axis {
    Step,
    Epoch,
    /// In seconds since 1970.
    #[default]
    Time,
}

impl Axis {
    /// By the API's name.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "step" => Self::Step,
            "epoch" => Self::Epoch,
            _ => Self::Time,
        }
    }
}

/// The place of charts. `id` is that of the element, which outlives renewals of the page; `path` returns [`Charts`].
pub(crate) fn charts_from(id: &str, path: &str) -> Markup {
    html! {
        div.charts id={ "charts-" (id) } data-keep="" data-chart=(path) {
            p.hint { "The charts are drawn by a script." }
        }
    }
}
