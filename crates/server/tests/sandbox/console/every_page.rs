//! Every page, in both sizes and both schemes of colours: a picture, the rules of accessibility, and the keyboard.

use serde_json::{Value, json};

use super::{Browser, send, service, submit, token, visitor};
use crate::{ending::command, service::Service};

/// What the pages show.
struct Shown {
    done: String,
    failed: String,
    sweep: String,
    waiting: String,
    steps: String,
    pipeline: String,
}

fn job(text: &str, name: &str) -> Value {
    let mut job = command(text);
    job["name"] = name.into();
    job["labels"] = json!({"team": "vision"});
    job
}

fn shown(service: &Service, token: &str) -> Shown {
    let submit = |job: &Value| submit(service, token, job);
    let mut failing =
        job("seq 200; echo 'ValueError: expected 3 channels, got 4' >&2; exit 3", "resnet fine-tune");
    failing["secret_env_vars"] = json!({"HF_TOKEN": "hf_x"});
    let mut sweep = job("echo \"METRICS {\\\"loss\\\": 0.$TAO_TASK}\"; [ $seed != 2 ]", "lr sweep");
    sweep["array"] = json!({"matrix": {"lr": [0.1, 0.01], "seed": [1, 2]}});
    sweep["results"] = json!([{"name": "metrics", "json_line": "METRICS "}]);
    let mut later = job("true", "tonight");
    later["backend_details"] = json!({"begin": "now+1hours"});
    let steps = json!({
        "name": "evaluation",
        "services": [{"name": "model", "command": "exec python3 -m http.server $PORT", "ready": {"http": "/"}}],
        "steps": [{"name": "prepare", "command": "echo prepared"}, {"name": "score", "command": "echo scored"}],
        "resources": {"gpus_per_node": 0, "cpus_per_task": 1, "time_hours": 0.1},
    });
    let mut jobs = json!({"prep": command("true"), "train-a": command("true"), "train-b": command("exit 1"), "compare": command("true")});
    jobs["train-a"]["needs"] = json!([{"job": "prep"}]);
    jobs["train-b"]["needs"] = json!([{"job": "prep"}]);
    jobs["compare"]["needs"] = json!([{"job": "train-a"}, {"job": "train-b"}]);
    let made = send(service, token, "/pipelines", &json!({"name": "nightly", "jobs": jobs}));
    Shown {
        done: submit(&job("printf '\\033[32mgreen\\033[0m\\n'; seq 50", "hello")),
        failed: submit(&failing),
        sweep: submit(&sweep),
        waiting: submit(&later),
        steps: submit(&steps),
        pipeline: made.1["id"].as_str().unwrap().to_owned(),
    }
}

/// The name of each page, its address, and a text that it has when it is whole.
fn pages(shown: &Shown) -> Vec<(&'static str, String, &'static str)> {
    let Shown { done, failed, sweep, waiting, steps, pipeline } = shown;
    let job = |id: &str, rest: &str| format!("/ui/jobs/{id}{rest}");
    vec![
        ("jobs", "/ui/jobs".into(), "hello"),
        ("jobs-filtered", "/ui/jobs?status=Error&label=team:vision".into(), "resnet"),
        ("job-done", job(done, ""), "Done"),
        ("job-failed", job(failed, ""), "Why it failed"),
        ("job-waiting", job(waiting, ""), "Why it waits"),
        ("job-steps", job(steps, ""), "Components"),
        ("job-attempts", job(failed, "/attempts"), "Attempt 1"),
        ("job-events", job(failed, "/events"), "Events"),
        ("job-commands", job(failed, "/timeline"), "submit"),
        ("job-spec", job(failed, "/spec"), "HF_TOKEN"),
        ("job-script", job(failed, "/script"), "#SBATCH"),
        ("job-webhook", job(failed, "/webhook"), "no webhook"),
        ("log", job(done, "/logs"), "green"),
        ("log-of-step", job(steps, "/logs?role=score"), "scored"),
        ("sweep", job(sweep, ""), "4 tasks"),
        ("sweep-tasks", job(sweep, "/tasks"), "lr 0.01"),
        ("sweep-results", job(sweep, "/results"), "loss"),
        ("pipelines", "/ui/pipelines".into(), "nightly"),
        ("pipeline", format!("/ui/pipelines/{pipeline}"), "skipped"),
        ("clusters", "/ui/clusters".into(), "sandbox"),
        ("cluster", "/ui/clusters/sandbox".into(), "polar"),
        ("usage", "/ui/usage?window=1&group_label=team".into(), "Minutes that runs waited"),
        ("new-job", "/ui/new".into(), "The job is valid"),
        ("access", "/ui/access".into(), "New token"),
        ("nowhere", "/ui/nowhere".into(), "Not found"),
    ]
}

#[test]
fn every_page_can_be_read_by_everybody() {
    let service = service();
    let token = token(&service, "ann", "read,write,admin");
    let browser = Browser::start(&service.url);
    browser.open("/ui/jobs");
    browser.sees("h1", "Log in");
    browser.check("log-in");
    browser.picture("log-in-1280-light");
    drop(browser);

    let shown = shown(&service, &token);
    let browser = visitor(&service, &token);
    let ends =
        [(&shown.done, "Done"), (&shown.failed, "Error"), (&shown.sweep, "Error"), (&shown.steps, "Done")];
    for (id, status) in ends {
        browser.sees(&format!("#job-{id} .badge"), status);
    }
    browser.sees(&format!("#job-{} .words", shown.waiting), "earliest start");
    browser.open(&format!("/ui/pipelines/{}", shown.pipeline));
    browser.sees(".job-head .badge", "Error");
    for (name, address, text) in pages(&shown) {
        browser.open(&address);
        browser.sees("main", text);
        for (width, dark) in [(1280, false), (1280, true), (390, true), (390, false)] {
            browser.view(width, dark);
            let name = format!("{name}-{width}-{}", if dark { "dark" } else { "light" });
            browser.check(&name);
            browser.picture(&name);
        }
    }
    browser.view(1280, false);
    by_keyboard(&browser, &shown);
    browser.open(&format!("/ui/jobs/{}", shown.waiting));
    browser.press("Cancel");
    browser.agree();
    browser.sees(".badge", "Canceled");
    browser.finish(&["404"]);
}

/// From the first key to the cause of a failure, without a mouse.
fn by_keyboard(browser: &Browser, shown: &Shown) {
    let (tab, enter) = ("\u{e004}", "\u{e007}");
    browser.open("/ui/jobs?status=Error&label=team:vision");
    browser.keys(tab);
    assert_eq!(browser.run("return document.activeElement.textContent"), json!("Skip to the content"));
    let top = browser.run("return document.activeElement.getBoundingClientRect().top");
    assert!(top.as_f64() >= Some(0.0), "the link can be seen: {top}");
    browser.keys(enter);
    let wanted = format!("/ui/jobs/{}", shown.failed);
    let at = || browser.run("return document.activeElement.getAttribute('href') ?? ''");
    for _ in 0..60 {
        if at() == json!(wanted) {
            break;
        }
        browser.keys(tab);
    }
    assert_eq!(at(), json!(wanted), "the job is within reach of the tabulator");
    browser.keys(enter);
    browser.sees(".cause", "Why it failed");
    browser.open("/ui/jobs");
    browser.keys("/");
    assert_eq!(browser.run("return document.activeElement.id"), json!("q"));
}
