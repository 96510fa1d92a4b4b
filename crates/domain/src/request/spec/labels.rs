//! A job's labels.

use std::collections::BTreeMap;

use super::faults::Faults;
use crate::{request::text::Label, violation::pointer};

const MAX_LABELS: usize = 64;

pub(super) fn labels(asked: &BTreeMap<String, String>, faults: &mut Faults) -> BTreeMap<Label, String> {
    if asked.len() > MAX_LABELS {
        faults.add("/labels", "too_many", format_args!("at most {MAX_LABELS} labels"));
    }
    let mut labels = BTreeMap::new();
    for (key, value) in asked.iter().take(MAX_LABELS) {
        let at = pointer("/labels", key);
        if value.chars().count() > 500 || value.contains('\0') {
            faults.add(at.clone(), "invalid", "must be at most 500 characters without NUL");
        }
        if let Some(key) = faults.parse(&at, key) {
            labels.insert(key, value.clone());
        }
    }
    labels
}
