//! What is wrong with the settings of one cluster, from the file or from the database.

use std::{fmt, str::FromStr};

use domain::Violation;

use super::{problems::Problems, settings::variables_of};

/// The codes that `docs/errors.md` lists.
pub(crate) const REQUIRED: &str = "required";
pub(crate) const OUT_OF_RANGE: &str = "out_of_range";
const INVALID: &str = "invalid";

#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

#[derive(Debug)]
struct Fault {
    key: String,
    /// The element, in a list.
    index: Option<usize>,
    code: &'static str,
    advice: String,
}

impl Faults {
    /// A value of the wrong form.
    pub(crate) fn add(&mut self, key: &str, advice: impl fmt::Display) {
        self.add_as(key, INVALID, advice);
    }

    pub(crate) fn add_as(&mut self, key: &str, code: &'static str, advice: impl fmt::Display) {
        self.0.push(Fault { key: key.to_owned(), index: None, code, advice: advice.to_string() });
    }

    pub(crate) fn add_at(&mut self, key: &str, index: usize, advice: impl fmt::Display) {
        let advice = advice.to_string();
        self.0.push(Fault { key: key.to_owned(), index: Some(index), code: INVALID, advice });
    }

    pub(super) fn parse<T: FromStr<Err: fmt::Display>>(&mut self, key: &str, text: &str) -> Option<T> {
        text.trim().parse().map_err(|error| self.add(key, error)).ok()
    }

    pub(super) fn parse_some<T: FromStr<Err: fmt::Display>>(
        &mut self,
        key: &str,
        text: Option<&String>,
    ) -> Option<T> {
        self.parse(key, text?)
    }

    pub(super) fn required<T: FromStr<Err: fmt::Display>>(
        &mut self,
        key: &str,
        text: Option<&String>,
        what: &str,
    ) -> Option<T> {
        if text.is_none() {
            self.add_as(key, REQUIRED, format_args!("is missing; set it to {what}"));
        }
        self.parse_some(key, text)
    }

    pub(super) fn each<'a, T: FromStr<Err: fmt::Display>>(
        &mut self,
        key: &str,
        texts: impl IntoIterator<Item = &'a String>,
    ) -> Vec<T> {
        let parsed = texts.into_iter().enumerate().filter_map(|(index, text)| {
            text.trim().parse().map_err(|error| self.add_at(key, index, error)).ok()
        });
        parsed.collect()
    }

    /// Adds the faults of a cluster from file and environment.
    pub(super) fn report(self, cluster: &str, problems: &mut Problems) {
        for Fault { key, advice, .. } in self.0 {
            let variables = variables_of(&format!("clusters.{key}"));
            problems.add(format_args!("clusters.{cluster}.{key}{variables}"), advice);
        }
    }

    /// For a document whose fields are the keys.
    pub(crate) fn in_document(self) -> Vec<Violation> {
        let violation = |Fault { key, index, code, advice }| {
            let pointer = match index {
                Some(index) => format!("/{key}/{index}"),
                None => format!("/{key}"),
            };
            Violation::new(pointer, code, advice)
        };
        self.0.into_iter().map(violation).collect()
    }
}
