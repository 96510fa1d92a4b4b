//! `docs/errors.md` against what the service says.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::operations;

const PAGE: &str = include_str!("../../../../docs/errors.md");

/// The cells of the rows of a table that begins below the heading.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let part = PAGE.split(&format!("## {heading}\n")).nth(1).unwrap();
    let part = part.split("\n## ").next().unwrap();
    let rows = part.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

fn code(cell: &'static str) -> &'static str {
    cell.trim_matches('`')
}

/// The status and the title of each problem, by code.
fn problems() -> BTreeMap<&'static str, (&'static str, &'static str)> {
    rows("Problems").into_iter().map(|cells| (code(cells[0]), (cells[1], cells[2]))).collect()
}

/// Fails when an answer says what the page does not know. Every answer of these tests that is an error comes here.
#[track_caller]
pub(crate) fn lists(problem: &serde_json::Value) {
    let named = problem["code"].as_str().unwrap();
    let (status, title) =
        problems().get(named).copied().unwrap_or_else(|| panic!("docs/errors.md does not know `{named}`"));
    assert_eq!(
        (status, title),
        (&*problem["status"].to_string(), problem["title"].as_str().unwrap()),
        "{named}"
    );
    let known: BTreeSet<_> =
        rows("Faults of a field or a parameter").iter().map(|cells| code(cells[0])).collect();
    for error in problem["errors"].as_array().into_iter().flatten() {
        let named = error["code"].as_str().unwrap();
        assert!(known.contains(named), "docs/errors.md does not know the fault `{named}`");
    }
}

#[test]
fn every_problem_of_the_document_is_on_the_page_and_no_other() {
    let page = problems();
    let mut named = BTreeSet::new();
    for (method, path, operation) in operations() {
        let responses = operation["responses"].as_object().unwrap();
        for (status, response) in responses.iter().filter(|(status, _)| status.as_str() >= "400") {
            // "Title (`code`). Title (`code`)."
            let text = response["description"].as_str().unwrap();
            for one in text.trim_end_matches("`).").split("`). ") {
                let (title, code) = one.split_once(" (`").unwrap();
                let at = format!("{method} {path}: {code}");
                assert_eq!(
                    page.get(code),
                    Some(&(status.as_str(), title)),
                    "{at} is not so in docs/errors.md"
                );
                named.insert(code.to_owned());
            }
        }
    }
    // What no operation answers, because there is none.
    named.extend(["not_found", "method_not_allowed"].map(str::to_owned));
    let extra: Vec<_> = page.keys().filter(|code| !named.contains(**code)).collect();
    assert!(extra.is_empty(), "docs/errors.md has problems that nobody answers: {extra:?}");
}
