//! What is wrong with one cluster, wherever it is written down.

use std::{fmt, str::FromStr};

use domain::Violation;

use super::{cluster_settings::variables_of, problems::Problems};

/// The names of broken rules, as `docs/errors.md` lists them.
pub(crate) const REQUIRED: &str = "required";
pub(crate) const OUT_OF_RANGE: &str = "out_of_range";
const INVALID: &str = "invalid";

/// The faults of one cluster's settings.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

#[derive(Debug)]
struct Fault {
    key: String,
    /// Which element of a list it is.
    index: Option<usize>,
    code: &'static str,
    advice: String,
}

impl Faults {
    /// A value that is not of the form that it must have.
    pub(crate) fn add(&mut self, key: &str, advice: impl fmt::Display) {
        self.add_as(key, INVALID, advice);
    }

    pub(crate) fn add_as(&mut self, key: &str, code: &'static str, advice: impl fmt::Display) {
        self.0.push(Fault { key: key.to_owned(), index: None, code, advice: advice.to_string() });
    }

    pub(crate) fn add_at(&mut self, key: &str, index: usize, advice: impl fmt::Display) {
        self.0.push(Fault {
            key: key.to_owned(),
            index: Some(index),
            code: INVALID,
            advice: advice.to_string(),
        });
    }

    pub(super) fn parse<T: FromStr<Err: fmt::Display>>(&mut self, key: &str, text: &str) -> Option<T> {
        text.trim().parse().map_err(|error| self.add(key, error)).ok()
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
        self.parse(key, text?)
    }

    pub(super) fn each<T: FromStr<Err: fmt::Display>>(
        &mut self,
        key: &str,
        texts: Option<&Vec<String>>,
    ) -> Vec<T> {
        let texts = texts.into_iter().flatten().enumerate();
        let parsed = texts.filter_map(|(index, text)| {
            text.trim().parse().map_err(|error| self.add_at(key, index, error)).ok()
        });
        parsed.collect()
    }

    /// In the words of the file and of the environment.
    pub(super) fn tell(self, cluster: &str, problems: &mut Problems) {
        for Fault { key, advice, .. } in self.0 {
            let variables = variables_of(&key);
            if variables.is_empty() {
                problems.add(format_args!("clusters.{cluster}.{key}"), advice);
            } else {
                problems.add(format_args!("clusters.{cluster}.{key} ({})", variables.join(", ")), advice);
            }
        }
    }

    /// By the places in a document that has the keys as its fields; none when nothing is wrong.
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
