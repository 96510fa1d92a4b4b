//! What people do in the console, from the log-in to the cause of a failure.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Browser, service, submit, token, visitor};
use crate::{
    ending::{command, held},
    service::until,
};

/// Marks the page: a mark that is gone shows that the page was loaded anew.
fn mark(browser: &Browser) {
    browser.run("window.isMarked = true");
}

fn assert_marked(browser: &Browser) {
    assert_eq!(browser.run("return window.isMarked === true"), Value::Bool(true), "the page was loaded anew");
}

#[test]
fn a_visitor_logs_in_submits_a_job_and_watches_it_to_its_end() {
    let service = service();
    let token = token(&service, "ann", "read,write");
    let browser = Browser::start(&service.url);
    browser.open("/");
    browser.sees("h1", "Log in");
    browser.fill("#token", "tsl_wrong");
    browser.press("Log in");
    browser.sees("#why", "unknown, expired or revoked");
    browser.fill("#token", &token);
    browser.press("Log in");
    browser.sees("main", "There are no jobs yet");
    assert_eq!(browser.place(), "/ui/jobs");

    browser.press("New job");
    browser.sees("#checked", "The job is valid");
    browser.fill("#request", "{\"command\": \"true\", \"colour\": 1}");
    browser.sees("#checked", "colour");
    let mut job = held("echo done");
    job["name"] = "from the console".into();
    browser.fill("#request", &job.to_string());
    browser.sees("#checked", "The job is valid");
    browser.press("Ask the cluster");
    browser.sees("#checked", "Slurm would accept it");
    browser.press("Submit");
    browser.sees("h1", "from the console");

    mark(&browser);
    browser.sees(".badge", "Running");
    let place = browser.place();
    service.let_go(place.rsplit('/').next().unwrap());
    browser.sees(".badge", "Done");
    browser.sees(".stepper li:last-child", "Done");
    assert_marked(&browser);
    assert!(browser.title().starts_with("Done · from the console"), "{}", browser.title());
    browser.press("Jobs");
    browser.sees("table.jobs tbody", "from the console");
    browser.press("Log out");
    browser.sees("h1", "Log in");
    browser.open(&place);
    browser.sees("h1", "Log in");
    browser.finish(&["401"]);
}

#[test]
fn the_list_of_jobs_lives_until_it_is_paused() {
    let service = service();
    let token = token(&service, "ann", "read,write");
    let browser = visitor(&service, &token);
    mark(&browser);
    let first = submit(&service, &token, &command("true"));
    let row = |id: &str| format!("#job-{id} .badge");
    browser.sees(&row(&first), "Done");
    // A selection outlives the renewals.
    browser.click(&format!("#pick-{first}"));
    browser.sees("[data-picked]", "1 job selected");
    browser.click("#pause");
    browser.sees("#pause", "Paused");
    let second = submit(&service, &token, &command("true"));
    browser.run(&format!(
        "window.calls = 0; new EventSource('/ui/wake?job={second}').addEventListener('wake', () => window.calls++)"
    ));
    until("the stream of the second job", Duration::from_secs(20), || {
        browser.run("return window.calls").as_u64() >= Some(2)
    });
    assert_eq!(browser.text(&row(&second)), None, "a paused page stays as it is");
    browser.click("#pause");
    browser.sees(&row(&second), "Done");
    browser.sees("[data-picked]", "1 job selected");
    assert_marked(&browser);
    browser.finish(&[]);
}

#[test]
fn the_list_is_searched_while_the_text_is_written() {
    let service = service();
    let token = token(&service, "ann", "read,write");
    for name in ["resnet", "segformer"] {
        let mut job = command("true");
        job["name"] = name.into();
        job["labels"] = json!({"team": "vision"});
        submit(&service, &token, &job);
    }
    let browser = visitor(&service, &token);
    mark(&browser);
    browser.sees(".facet[href*='status=Done'] .number", "2");
    browser.fill("#q", "SEG");
    browser.sees(".chosen", "SEG");
    let rows = || browser.text("table.jobs tbody").unwrap();
    assert!(rows().contains("segformer") && !rows().contains("resnet"), "{}", rows());
    assert_eq!(browser.place(), "/ui/jobs?q=SEG");
    browser.keys("x");
    browser.sees(".empty", "No job matches");
    assert_eq!(
        browser.run("return document.activeElement.value"),
        json!("SEGx"),
        "the field keeps its text and the focus"
    );
    assert_marked(&browser);
    browser.press("Show all jobs");
    browser.press("team:vision");
    browser.sees(".chosen", "label: team:vision");
    browser.finish(&[]);
}

#[test]
fn a_log_with_bars_and_colours_is_read_while_it_grows() {
    let service = service();
    let token = token(&service, "ann", "read,write");
    let text = r#"
        printf '\033[1;32mgreen\033[0m and \033[38;5;208morange\033[0m\n'
        for i in $(seq 900); do printf '\rTraining: %d/900' $i; done
        until [ -e "$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/go" ]; do sleep 0.2; done
        printf '\rTraining: done\nthe end\n'
    "#;
    let id = submit(&service, &token, &command(text));
    let browser = visitor(&service, &token);
    browser.open(&format!("/ui/jobs/{id}/logs"));
    browser.sees("#log .f2.bold", "green");
    browser.sees("#log .f11", "orange");
    // Slurm passes on lines, and what is longer than its buffer.
    browser.sees("#partial .again", "↻");
    browser.sees("#partial", "Training: ");
    let shown = browser.text(".log").unwrap();
    assert!(shown.matches("Training").count() == 1 && !shown.contains('\u{1b}'), "{shown}");
    browser.picture("log-follow");
    mark(&browser);
    service.let_go(&id);
    browser.sees("#log", "the end");
    browser.sees("#log", "Training: done");
    browser.sees("#follow-state", "has finished");
    browser.sees(".job-head .badge", "Done");
    assert_marked(&browser);
    browser.open(&format!("/ui/jobs/{id}/logs?offset=0"));
    browser.sees("#log", "the end");
    browser.finish(&[]);
}

#[test]
fn a_running_job_is_canceled_after_a_question() {
    let service = service();
    let token = token(&service, "ann", "read,write");
    let id = submit(&service, &token, &command("exec sleep 600"));
    let browser = visitor(&service, &token);
    browser.open(&format!("/ui/jobs/{id}"));
    browser.sees(".badge", "Running");
    browser.press("Cancel");
    assert!(browser.agree().contains("Cancel this job?"));
    browser.sees("#notice", "Canceling");
    browser.sees(".badge", "Canceled");
    // Several at once.
    let ids = [(); 2].map(|()| submit(&service, &token, &command("exec sleep 600")));
    browser.open("/ui/jobs");
    for id in &ids {
        browser.click(&format!("#pick-{id}"));
    }
    browser.click("button[value=cancel]");
    assert!(browser.agree().contains("selected jobs"));
    browser.sees("#notice", "2 jobs will be canceled");
    for id in &ids {
        browser.sees(&format!("#job-{id} .badge"), "Canceled");
    }
    browser.finish(&[]);
}

#[test]
fn the_failed_part_of_a_sweep_goes_again() {
    let service = service();
    let token = token(&service, "ann", "read,write");
    let text = r#"
        mkdir -p "$TAO_API_RESULTS_DIR"
        if [ "$lr" = 0.1 ] && mkdir "$TAO_API_RESULTS_DIR/first"; then echo "diverged" >&2; exit 3; fi
        echo "METRICS {\"loss\": $lr}"
    "#;
    let mut job = command(text);
    job["array"] = json!({"matrix": {"lr": [0.1, 0.01, 0.001]}});
    job["results"] = json!([{"name": "metrics", "json_line": "METRICS "}]);
    let id = submit(&service, &token, &job);
    let browser = visitor(&service, &token);
    browser.open(&format!("/ui/jobs/{id}/tasks"));
    mark(&browser);
    browser.sees(".grid li:nth-child(1) .bad", "×");
    browser.sees(".grid li:nth-child(3) .good", "✓");
    browser.sees("#task-0", "0.1");
    browser.press("Retry failed tasks");
    browser.sees(".job-head .badge", "Done");
    browser.sees(".grid li:nth-child(1) .good", "✓");
    assert_marked(&browser);
    browser.open(&format!("/ui/jobs/{id}/results"));
    browser.sees("tbody tr:nth-child(2)", "0.01");
    browser.finish(&[]);
}

#[test]
fn a_cause_is_three_clicks_from_the_list_and_a_wait_two() {
    let service = service();
    let token = token(&service, "ann", "read,write");
    let fails = "seq 100; echo 'ValueError: expected 3 channels, got 4' >&2; exit 3";
    submit(&service, &token, &command("true"));
    let failing = submit(&service, &token, &command(fails));
    let mut later = command("true");
    later["backend_details"] = json!({"begin": "now+1hours"});
    let waiting = submit(&service, &token, &later);
    let browser = visitor(&service, &token);
    browser.sees(&format!("#job-{failing} .badge"), "Error");
    browser.sees(&format!("#job-{waiting} .words"), "earliest start");

    browser.click(".facet[href*='status=Error']");
    browser.sees(".chosen", "Error");
    assert_eq!(browser.run("return document.querySelectorAll('table.jobs tbody tr').length"), json!(1));
    browser.click("table.jobs th a");
    browser.sees(".cause", "Why it failed");
    browser.sees(".cause pre.line", "ValueError: expected 3 channels, got 4");
    browser.press("Standard error");
    browser.sees("#log", "ValueError");

    browser.open("/ui/jobs");
    browser.click(&format!("#job-{waiting} th a"));
    browser.sees(".cause", "Why it waits");
    browser.sees(".cause", "BeginTime");
    browser.press("Cancel");
    browser.agree();
    browser.sees(".badge", "Canceled");
    browser.finish(&[]);
}

#[test]
fn a_hit_of_a_search_leads_to_its_line() {
    let service = service();
    let token = token(&service, "ann", "read,write");
    let text = r"
        seq -f 'line %.0f' 30000
        for i in $(seq 900); do printf '\rTraining: %d/900' $i; done
        printf '\nneedle <b>\n'; seq -f 'line %.0f' 30000
    ";
    let id = submit(&service, &token, &command(text));
    let browser = visitor(&service, &token);
    browser.open(&format!("/ui/jobs/{id}"));
    browser.sees(".job-head .badge", "Done");
    browser.press("Logs");
    browser.fill("#log-q", "needle <b>");
    // Enter.
    browser.keys("\u{e007}");
    browser.sees("section[aria-label=Hits]", "1 hit");
    browser.sees(".hits mark", "needle <b>");
    browser.check("hits");
    browser.click(".hits a");
    browser.sees("#hit", "needle <b>");
    let is_in_view = "const hit = document.getElementById('hit').getBoundingClientRect(); return hit.top >= 0 && hit.bottom <= innerHeight";
    until("the hit to be in view", Duration::from_secs(20), || browser.run(is_in_view) == json!(true));
    browser.picture("log-hit");
    browser.check("a hit");
    // What a bar was meanwhile.
    browser.fill("#log-q", "Training: 4[0-9]1/");
    browser.click("input[name=regex]");
    browser.press("Search");
    browser.sees(".hits", "Training: 4");
    browser.click(".hits a");
    browser.sees("#hit", "Training: 4");
    browser.fill("#log-q", "(");
    browser.press("Search");
    browser.sees("[role=alert]", "POSIX extended regular expression");
    browser.fill("#log-q", "^line [0-9]+$");
    browser.press("Search");
    browser.sees("section[aria-label=Hits]", "50 hits");
    browser.press("Search further");
    browser.sees(".hits", "line 51");
    browser.finish(&[]);
}

#[test]
fn the_metrics_of_a_job_are_drawn_and_go_on_with_it() {
    let service = service();
    let token = token(&service, "ann", "read,write");
    let text = r#"
        results=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID
        mkdir -p "$results"
        line() { printf '{"status": "RUNNING", "epoch": %d, "max_epoch": 40, "kpi": {"loss": %s, "<b>hostile": 1}}\n' "$1" "$2" >> "$results/status.json"; }
        for i in $(seq 20); do line $i $((100 / i)); done
        until [ -e "$results/go" ]; do sleep 0.2; done
        line 21 NaN; line 22 4711
    "#;
    let id = submit(&service, &token, &command(text));
    let browser = visitor(&service, &token);
    browser.open(&format!("/ui/jobs/{id}"));
    browser.sees(".charts", "loss");
    browser.sees(".charts", "<b>hostile");
    let ink = "const canvas = [...document.querySelectorAll('.charts canvas')].at(-1);
               return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0)";
    until("the chart to be drawn", Duration::from_secs(20), || browser.run(ink) == json!(true));
    for (name, width, dark) in [("light", 1280, false), ("dark", 1280, true), ("narrow", 390, false)] {
        browser.view(width, dark);
        let fits = "return [...document.querySelectorAll('.charts figure')].every((one) => one.querySelector('.uplot').getBoundingClientRect().width <= one.clientWidth)";
        until("the charts to fit", Duration::from_secs(20), || browser.run(fits) == json!(true));
        browser.check(name);
        browser.picture(&format!("charts-{name}"));
    }
    mark(&browser);
    browser.run("[...document.querySelectorAll('.charts summary')].at(-1).click()");
    browser.sees(".charts details[open] table", "Least");
    service.let_go(&id);
    browser.sees(".job-head .badge", "Done");
    // The table stays open.
    browser.sees(".charts details[open] table", "4711");
    browser.sees(".charts", "1 values were null, NaN or infinite");
    assert_marked(&browser);
    browser.finish(&[]);
}

#[test]
fn the_figures_of_jobs_are_drawn_for_the_window_and_the_filters() {
    let service = service();
    let token = token(&service, "ann", "read,write");
    for (team, text) in [("vision", "true"), ("vision", "exit 1"), ("speech", "true")] {
        let mut job = command(text);
        job["labels"] = json!({"team": team});
        submit(&service, &token, &job);
    }
    let browser = visitor(&service, &token);
    browser.sees(".facet[href*='status=Done'] .number", "2");
    browser.sees(".facet[href*='status=Error'] .number", "1");
    browser.open("/ui/usage?window=1&group_label=team&label=team:vision");
    browser.sees(".charts figure:nth-of-type(3)", "Minutes that runs waited");
    let ink = "return [...document.querySelectorAll('.charts canvas')].map((canvas) =>
                   canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0))";
    until("the charts to be drawn", Duration::from_secs(20), || {
        browser.run(ink) == json!([true, true, true])
    });
    browser.run("document.querySelector('.charts summary').click()");
    // The greatest values of the hours: one job was done, and one failed.
    let greatest =
        "const rows = [...document.querySelectorAll('.charts figure:first-of-type details tbody tr')];
                    return rows.map((row) => [row.firstChild.textContent, row.lastChild.textContent])";
    assert_eq!(browser.run(greatest), json!([["Done", "1"], ["Error", "1"], ["Canceled", "0"]]));
    let address = "return document.querySelector('[data-chart]').dataset.chart";
    assert_eq!(browser.run(address), json!("/ui/usage/charts?label=team%3Avision&window=1"));
    browser.check("usage");
    browser.finish(&[]);
}
