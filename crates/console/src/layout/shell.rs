//! The frame of every page.

use maud::{DOCTYPE, Markup, html};

use super::icon::{Icon, icon};
use crate::{
    ROOT, assets,
    model::{Moment, Who},
    state::LogIn,
};

/// Without inline styles, `eval`, scripts in answers, and pages in the browser's storage. Answers of every status are put into the
/// page: refusals say where.
const HTMX: &str = r#"{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,"historyCacheSize":0,"refreshOnHistoryMiss":true,"attributesToSettle":["class"],"responseHandling":[{"code":"204","swap":false},{"code":"[2345]..","swap":true}]}"#;

/// The part of the console that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Jobs,
    Pipelines,
    Clusters,
    Usage,
    NewJob,
    Access,
    None,
}

const SECTIONS: [(Section, &str, &str); 5] = [
    (Section::Jobs, "Jobs", "/jobs"),
    (Section::Pipelines, "Pipelines", "/pipelines"),
    (Section::Clusters, "Clusters", "/clusters"),
    (Section::Usage, "Usage", "/usage"),
    (Section::NewJob, "New job", "/new"),
];

/// Whom a page is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visitor<'a> {
    pub(crate) who: &'a Who,
    pub(crate) login: LogIn,
}

/// What is around the content of a page.
pub(crate) struct Shell<'a> {
    pub(crate) title: &'a str,
    pub(crate) section: Section,
    /// The address of the stream that wakes it.
    pub(crate) wakes: Option<&'a str>,
    pub(crate) now: Moment,
    /// None before the log-in, and where it does not matter.
    pub(crate) visitor: Option<Visitor<'a>>,
}

impl Shell<'_> {
    pub(crate) fn around(&self, content: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="htmx-config" content=(HTMX);
                    title { (self.title) " · tao-slurm" }
                    link rel="icon" type="image/svg+xml" href=(assets::icon());
                    @for path in assets::styles() { link rel="stylesheet" href=(path); }
                    @for path in assets::scripts() { script defer src=(path) {} }
                }
                body hx-ext="morph" data-now=(self.now.timestamp_millis()) {
                    a.skip href="#main" { "Skip to the content" }
                    (self.header())
                    main #main tabindex="-1" data-wakes=[self.wakes] {
                        div #notice role="status" aria-live="polite" {}
                        (content)
                    }
                }
            }
        }
    }

    fn header(&self) -> Markup {
        html! {
            header.top {
                a.brand href=(ROOT) { (icon(Icon::Logo)) "tao-slurm" }
                @if let Some(Visitor { who, login }) = self.visitor {
                    nav aria-label="Pages" {
                        @for (section, name, path) in SECTIONS {
                            @if section != Section::NewJob || who.may_write() {
                                a href={ (ROOT) (path) } aria-current=[(section == self.section).then_some("page")] { (name) }
                            }
                        }
                    }
                    div.tools {
                        @if self.wakes.is_some() {
                            button #pause.quiet type="button" aria-pressed="false" { span.dot {} span.word { "Live" } }
                        }
                        a.who href={ (ROOT) "/access" } aria-current=[(self.section == Section::Access).then_some("page")] { (who.owner) }
                        @if login == LogIn::Token {
                            form method="post" action={ (ROOT) "/logout" } { button.quiet { "Log out" } }
                        }
                    }
                }
            }
        }
    }
}
