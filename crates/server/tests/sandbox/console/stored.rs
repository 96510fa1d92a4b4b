//! Scripts that were stored as texts: none runs, on any page, and all are shown.

use axum::http::Method;
use serde_json::{Value, json};

use super::{
    Browser, ODD,
    hoard::{self, PART, Stored},
    payloads::{self, is_plain},
    token, visitor,
};
use crate::kept_clusters::with_keys;

/// What is read but is no page.
const NO_PAGES: [&str; 9] = [
    // There only with an issuer.
    "/ui/login/start",
    "/ui/login/callback",
    "/ui/assets/{hash}/{name}",
    "/ui/wake",
    "/ui/jobs/{id}/logs/follow",
    "/ui/jobs/{id}/logs/file",
    "/ui/jobs/{id}/usage",
    "/ui/jobs/{id}/charts",
    "/ui/usage/charts",
];

/// Each page that is read, of a job, pipeline and cluster of each kind that holds the texts.
fn every_page(stored: &Stored) -> Vec<String> {
    let (part, job, sweep) = (&stored.parts[0], &stored.jobs[0], &stored.sweep);
    let reads = console::addresses()
        .filter(|(method, path)| *method == Method::GET && !NO_PAGES.contains(&path.as_str()));
    let mut pages: Vec<_> = reads.flat_map(|(_, path)| filled(&path, stored)).collect();
    let logs = ["logs?stream=err", "logs?offset=0", "logs?q=alert"];
    pages.extend(logs.map(|rest| format!("/ui/jobs/{part}/{rest}")));
    pages.push(format!("/ui/jobs/{sweep}/logs?task=7&stream=err"));
    pages.extend([part, job].map(|id| format!("/ui/new?from={id}")));
    pages.extend(["group_by=owner", "group_label=team"].map(|group| format!("/ui/usage?{group}")));
    pages
}

fn filled(path: &str, stored: &Stored) -> Vec<String> {
    let with = |name: &str, values: &[&str]| values.iter().map(|value| path.replace(name, value)).collect();
    let pages: Vec<_> = if path.starts_with("/ui/jobs/{id}") {
        with("{id}", &[&stored.sweep, &stored.jobs[0], &stored.parts[0]])
    } else if path.contains("{name}") {
        with("{name}", &["silent", "sandbox"])
    } else {
        with("{id}", &[&stored.pipelines[0]])
    };
    let is_whole = pages.iter().all(|page: &String| !page.contains('{'));
    assert!(is_whole, "{path} has a parameter that this test does not know");
    pages
}

/// Opens a page, and returns what is odd in it.
fn odd(browser: &Browser, page: &str) -> Vec<String> {
    browser.open(page);
    let odd = strings(&browser.run("return oddities()"));
    odd.into_iter().map(|odd| format!("{page}: {odd}")).collect()
}

/// Opens a list and its further pages. Returns what is odd in them, and their texts.
fn list(browser: &Browser, first: &str) -> (Vec<String>, String) {
    let (mut found, mut shown, mut page) = (Vec::new(), String::new(), first.to_owned());
    loop {
        found.extend(odd(browser, &page));
        shown += &browser.text("main").unwrap();
        let next = browser.run(
            "const links = [...document.querySelectorAll('.pager a')];
             return links.find((link) => link.textContent === 'Next page')?.getAttribute('href') ?? null",
        );
        match next.as_str() {
            Some(next) => next.clone_into(&mut page),
            None => return (found, shown),
        }
    }
}

/// Puts pages into the one that is shown, as its renewals do. Returns what is odd in them.
fn renewed(browser: &Browser, pages: &[String]) -> Vec<String> {
    let parts = pages.chunks(50).map(|part| browser.run(&format!("return await renewals({})", json!(part))));
    parts.flat_map(|odd| strings(&odd)).collect()
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// In an address.
fn address(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn assert_all_shown(shown: &str, texts: &[String], place: &str) {
    let plain = texts.iter().filter(|text| is_plain(text));
    let missing: Vec<_> = plain.filter(|text| !shown.contains(*text)).collect();
    assert!(missing.is_empty(), "{place} does not show {missing:?}");
}

#[test]
fn stored_scripts_do_not_run_and_are_shown_as_texts_on_every_page() {
    let texts = payloads::all();
    let (mut service, _keys) = with_keys(&[("TAO_SLURM_AUTH", "tokens")]);
    service.spawn();
    let root = token(&service, "root", "read,write,admin");
    let stored = hoard::stored(&service, &root, &texts);
    let browser = visitor(&service, &root);
    // The policy of the pages would stop what they let through: they must not rely on it.
    browser.watch(ODD, true);
    let mut found = Vec::new();
    for (first, name) in [("/ui/jobs", "jobs"), ("/ui/pipelines", "pipelines"), ("/ui/access", "tokens")] {
        let (odd, shown) = list(&browser, first);
        found.extend(odd);
        assert_all_shown(&shown, &texts, name);
    }
    found.extend(stored.pipelines.iter().flat_map(|id| odd(&browser, &format!("/ui/pipelines/{id}"))));
    let of = |jobs: &[String], tabs: &[&str]| -> Vec<_> {
        jobs.iter().flat_map(|id| tabs.iter().map(move |tab| format!("/ui/jobs/{id}{tab}"))).collect()
    };
    let mut pages = of(&stored.jobs, &["", "/spec", "/webhook"]);
    for group in payloads::groups(&texts) {
        let text = address(&group.join(" "));
        pages.push(format!("/ui/jobs?q={text}&label={text}:{text}&owner={text}"));
        pages.push(format!("/ui/usage?group_label={text}&label=team:{text}"));
    }
    found.extend(renewed(&browser, &pages));

    for (part, texts) in stored.parts.iter().zip(texts.chunks(PART)) {
        browser.open(&format!("/ui/jobs/{part}"));
        browser.sees(".job-head .badge", "Error");
        browser.sees(".charts figcaption", "");
        // Longer names are no names of metrics.
        let names: Vec<_> = texts.iter().filter(|text| text.len() <= 100).cloned().collect();
        assert_all_shown(&browser.text(".charts").unwrap(), &names, "the charts");
        found.extend(strings(&browser.run("return oddities()")));
    }
    browser.open(&format!("/ui/jobs/{}/logs", stored.parts[0]));
    browser.sees("#log", "METRICS");
    assert_all_shown(&browser.text("#log").unwrap(), &texts, "the log");
    browser.open(&format!("/ui/jobs/{}/tasks", stored.sweep));
    browser.sees(".job-head .badge", "Error");
    for tab in ["tasks", "results"] {
        let (odd, shown) = list(&browser, &format!("/ui/jobs/{}/{tab}", stored.sweep));
        found.extend(odd);
        assert_all_shown(&shown, &texts, tab);
    }
    found.extend(renewed(
        &browser,
        &of(&stored.parts, &["", "/events", "/results", "/script", "/logs?stream=err"]),
    ));
    let pages = every_page(&stored);
    found.extend(pages.iter().flat_map(|page| odd(&browser, page)));
    // What the policy stops is a complaint of the browser.
    browser.watch("", false);
    found.extend(pages.iter().flat_map(|page| odd(&browser, page)));
    assert_eq!(found, [""; 0]);
    // What is searched for may have control characters, which no label has; and one cluster does not answer.
    browser.finish(&["status of 400", "status of 503"]);
}
