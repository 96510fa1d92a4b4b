//! Hostile texts, other owners and other sites, in a real browser.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::json;

use super::{Browser, ODD, addresses, elsewhere, payloads, send, service, submit, token, visitor};
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
    let mut job = command("exec sleep 600");
    job["name"] = "of-ann".into();
    job["labels"] = json!({"of-ann": "of-ann"});
    let id = submit(&service, &ann, &job);
    let made = send(&service, &ann, "/pipelines", &json!({"name": "of-ann", "jobs": {"a": command("true")}}));
    let pipeline = made.1["id"].as_str().unwrap().to_owned();
    let browser = visitor(&service, &bob);
    browser.sees("main", "There are no jobs yet");
    // The status of an address for this visitor, and whether its answer has something of the other owner.
    let answer = |method: &Method, path: &str| {
        let answer = browser.run(&format!(
            "const headers = {{'content-type': 'application/x-www-form-urlencoded'}};
             const answer = await fetch({}, {{method: '{method}', headers}});
             const isPage = (answer.headers.get('content-type') ?? '').startsWith('text/html');
             return [answer.status, isPage ? await answer.text() : '']",
            json!(path)
        ));
        let text = answer[1].as_str().unwrap().to_owned();
        assert!(!text.contains("of-ann") && !text.contains("sleep 600"), "{method} {path}: {text}");
        answer[0].as_u64().unwrap()
    };
    let mut others = 0;
    for (method, path) in addresses(&id, &pipeline) {
        if path.contains(&id) || path.contains("/pipelines/") {
            assert_eq!(answer(&method, &path), 404, "{method} {path}");
            others += 1;
        } else if path.starts_with("/ui/access/tokens") {
            // Only an administrator has tokens at all.
            assert_eq!(answer(&method, &path), 403, "{method} {path}");
        } else if method == Method::GET && path != "/ui/wake" {
            assert_eq!(answer(&method, &path), 200, "{method} {path}");
        }
    }
    assert!(others > 20, "{others}");
    for list in [
        "jobs?owner=ann",
        "jobs?q=of-ann",
        "jobs?label=of-ann:of-ann",
        "usage?group_by=status&owner=ann",
        "usage?group_label=team",
    ] {
        // The filter itself is shown.
        let text = browser.run(&format!("return await (await fetch('/ui/{list}')).text()"));
        assert!(!text.as_str().unwrap().contains(&id), "{list}: {text}");
    }
    for page in [format!("/ui/jobs/{id}"), format!("/ui/jobs/{id}/logs"), format!("/ui/pipelines/{pipeline}")]
    {
        browser.open(&page);
        browser.sees("h1", "No such");
    }
    assert_eq!(answer(&Method::GET, &format!("/ui/new?from={id}")), 404);
    browser.finish(&["404", "403"]);
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
    let token = token(&service, "ann", "read,write,admin");
    let id = submit(&service, &token, &command("exec sleep 600"));
    let made = send(&service, &token, "/pipelines", &json!({"jobs": {"a": command("exec sleep 600")}}));
    let pipeline = made.1["id"].as_str().unwrap();
    let browser = visitor(&service, &token);
    browser.open(&format!("/ui/jobs/{id}"));
    browser.sees(".badge", "Running");
    let job = format!("{}/ui/jobs/{id}", service.url);
    let changes = addresses(&id, pipeline).into_iter().filter(|(method, _)| *method == Method::POST);
    let forms = changes.enumerate().map(|(number, (_, path))| {
        format!(
            "<form method=post action='{}{path}'><input name=job value='{id}'><input name=action value=cancel>
             <input name=owner value=eve><button>win {number}</button></form>",
            service.url
        )
    });
    let forms: Vec<_> = forms.collect();
    assert!(forms.len() > 15, "{forms:?}");
    let port = elsewhere::page(&format!("{}<a href='{job}'>read</a>", forms.concat()));
    for number in 0..forms.len() {
        browser.open(&format!("http://127.0.0.1:{port}/"));
        browser.press(&format!("win {number}"));
        browser.sees("h1", "Refused");
    }
    browser.open(&format!("http://localhost:{port}/"));
    browser.press("win 0");
    browser.sees("h1", "Refused");
    // A link of another site leads to the page, and the visitor is still logged in.
    browser.open(&format!("http://localhost:{port}/"));
    browser.press("read");
    browser.sees(".badge", "Running");
    browser.press("Cancel");
    browser.agree();
    browser.sees(".badge", "Canceled");
    assert_eq!(send(&service, &token, &format!("/pipelines/{pipeline}/cancel"), &json!({})).0, 202);
}

/// Without this, a browser that says nothing would make every other test succeed.
/// The numbers of the stored scripts that run in a frame, each of which has so many milliseconds.
fn scripts_that_run(browser: &Browser, patience: u32) -> Vec<usize> {
    for part in payloads::all().chunks(40) {
        browser.run(&format!("await trials({}, {patience})", json!(part)));
    }
    let number = |text: &String| text.split_once("a stored script ran: ")?.1.trim_matches('"').parse().ok();
    browser.complaints().iter().filter_map(number).collect()
}

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
    let mut numbers = BTreeSet::new();
    // On a busy machine a frame takes longer.
    for patience in [200, 1000, 5000] {
        if numbers.len() < 100 {
            numbers.extend(scripts_that_run(&browser, patience));
        }
    }
    assert!(numbers.len() >= 100, "only {numbers:?} of the stored scripts run");
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
