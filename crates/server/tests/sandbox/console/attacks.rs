//! Hostile texts, other owners and other sites, in a real browser.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Browser, ODD, elsewhere, payloads, send, service, submit, token, visitor};
use crate::ending::command;

const EVIL: &str = "</title></textarea><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}gpj.exe";

#[test]
fn hostile_texts_are_texts_and_long_lines_do_not_matter() {
    let service = service();
    let token = token(&service, "ann", "read,write");
    let text = r#"
        mkdir -p "$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID"
        printf '\033]0;title\007<script>alert(2)</script> \033[8mhidden\033[0m \033[30;40mblack\n'
        head -c 1000000 /dev/zero | tr '\0' x; echo
        printf 'METRICS {"<img src=x onerror=alert(3)>": "<b>bold</b>"}\n'
        echo '{"status": "FAILURE", "message": "<script>alert(4)</script>", "kpi": {"<i>": 1}}' >"$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/status.json"
        echo 'ValueError: <img src=x onerror=alert(5)>' >&2
        exit 1
    "#;
    let mut job = command(text);
    job["name"] = EVIL.into();
    job["labels"] = json!({EVIL: EVIL});
    job["docker_env_vars"] = json!({"EVIL": EVIL});
    job["results"] = json!([{"name": "metrics", "json_line": "METRICS "}]);
    let id = submit(&service, &token, &job);
    let browser = visitor(&service, &token);
    browser.sees(&format!("#job-{id} .badge"), "Error");
    browser.sees(&format!("#job-{id}"), "<script>alert(1)</script>");
    let pages = [
        "",
        "/attempts",
        "/events",
        "/results",
        "/spec",
        "/script",
        "/timeline",
        "/logs",
        "/logs?stream=err",
        "/logs?offset=0",
    ];
    for rest in pages {
        browser.open(&format!("/ui/jobs/{id}{rest}"));
        browser.sees("h1", "alert(1)");
        let inside = "
            const made = document.querySelectorAll('main script, main img, main b, main i').length;
            return [made, document.body.innerText.includes('\\u202e')]";
        assert_eq!(browser.run(inside), json!([0, false]), "{rest}");
    }
    browser.sees("#log", "hidden");
    browser.sees("#log", "black");
    browser.open(&format!("/ui/jobs/{id}/logs"));
    browser.sees("#log", "METRICS");
    browser.open(&format!("/ui/new?from={id}"));
    browser.sees("#checked", "The job is valid");
    browser.picture("hostile");
    browser.finish(&[]);
}

#[test]
fn what_another_owner_has_is_not_there_on_any_page() {
    let service = service();
    let of = |owner, scopes| token(&service, owner, scopes);
    let (ann, bob, root) = (of("ann", "read,write"), of("bob", "read,write"), of("root", "admin"));
    let id = submit(&service, &ann, &command("exec sleep 600"));
    let made = send(&service, &ann, "/pipelines", &json!({"jobs": {"a": command("true")}}));
    let pipeline = made.1["id"].as_str().unwrap().to_owned();
    let browser = visitor(&service, &bob);
    browser.sees("main", "There are no jobs yet");
    let parts = [
        "",
        "/tasks",
        "/attempts",
        "/events",
        "/results",
        "/spec",
        "/script",
        "/timeline",
        "/webhook",
        "/logs",
    ];
    let mut pages: Vec<String> = parts.map(|rest| format!("/ui/jobs/{id}{rest}")).into();
    pages.push(format!("/ui/pipelines/{pipeline}"));
    for page in pages {
        browser.open(&page);
        browser.sees("h1", "No such");
        assert!(!browser.text("main").unwrap().contains("sleep"), "{page}");
    }
    let status = browser.run(&format!(
        "const headers = {{'content-type': 'application/x-www-form-urlencoded'}};
         return (await fetch('/ui/jobs/{id}/do/cancel', {{method: 'POST', headers}})).status"
    ));
    assert_eq!(status, json!(404));
    browser.finish(&["404"]);
    let admin = visitor(&service, &root);
    admin.sees(&format!("#job-{id}"), "ann");
    admin.open(&format!("/ui/jobs/{id}"));
    admin.sees(".badge", "Running");
    admin.press("Cancel");
    admin.agree();
    admin.sees(".badge", "Canceled");
    admin.finish(&[]);
}

/// Another port is another origin of the same site, so the browser sends the cookie with it: only the origin tells them apart.
#[test]
fn a_page_of_another_origin_cannot_act_for_a_visitor() {
    let service = service();
    let token = token(&service, "ann", "read,write");
    let id = submit(&service, &token, &command("exec sleep 600"));
    let browser = visitor(&service, &token);
    let job = format!("{}/ui/jobs/{id}", service.url);
    let html = format!(
        "<form method=post action='{job}/do/cancel'><button>win</button></form><a href='{job}'>read</a>"
    );
    let port = elsewhere::page(&html);
    for site in ["127.0.0.1", "localhost"] {
        browser.open(&format!("http://{site}:{port}/"));
        browser.press("win");
        browser.sees("h1", "Refused");
        browser.open(&format!("/ui/jobs/{id}"));
        browser.sees(".badge", "Running");
    }
    // A link of another site leads to the page, and the visitor is still logged in.
    browser.open(&format!("http://localhost:{port}/"));
    browser.press("read");
    browser.sees(".badge", "Running");
    browser.press("Cancel");
    browser.agree();
    browser.sees(".badge", "Canceled");
}

/// Without this, a browser that says nothing would make every other test succeed.
#[test]
fn the_browser_tells_of_what_the_tests_look_for() {
    let service = service();
    let token = token(&service, "ann", "read");
    let browser: Browser = visitor(&service, &token);
    browser.requested();
    assert_eq!(browser.complaints(), [""; 0]);
    browser.run(
        "document.body.insertAdjacentHTML('beforeend',
             '<p style=\"color: red\">x</p><button></button><img src=\"http://127.0.0.2:1/x\">');
         const script = document.createElement('script');
         script.textContent = 'window.isEvil = true';
         document.body.append(script)",
    );
    let complaints = browser.complaints().join("\n");
    for policy in ["style-src 'self'", "script-src 'self'", "img-src 'self'"] {
        assert!(complaints.contains(policy), "{policy}: {complaints}");
    }
    assert_eq!(browser.run("return window.isEvil ?? null"), json!(null));
    let faults = browser.faults();
    assert!(faults.to_string().contains("button-name"), "axe-core finds a button without a name: {faults}");
    // The stored texts run where nothing keeps them from it.
    browser.watch(ODD, true);
    browser.open("/ui/jobs");
    assert_eq!(browser.run("return oddities()"), json!([]));
    for part in payloads::all().chunks(40) {
        browser.run(&format!("await trials({})", json!(part)));
    }
    let (complaints, ran) = (browser.complaints(), "a stored script ran: ");
    let numbers = complaints.iter().filter_map(|text| text.split_once(ran)?.1.trim_matches('"').parse().ok());
    let numbers: BTreeSet<usize> = numbers.collect();
    assert!(numbers.len() >= 100, "only {numbers:?} of the stored scripts run: {complaints:?}");
    browser.run(
        "document.getElementById('live').innerHTML += '<b>bold</b><p onclick=x><a href=//evil.example>'",
    );
    let odd = browser.run("return oddities()").to_string();
    for what in ["an element: <b>", "the attribute onclick", "an address in href"] {
        assert!(odd.contains(what), "{what}: {odd}");
    }
    browser.open(&format!("http://localhost:{}/", elsewhere::page("elsewhere")));
    assert!(browser.requested().iter().any(|url| url.starts_with("http://localhost:")));
}
