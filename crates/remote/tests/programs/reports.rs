//! Polling: what running jobs report of themselves.

use remote::{ReportFiles, Reports, UsageMarker, WaitingState, Watched};

use crate::{
    poll::{poll, row, watched},
    site::Site,
};

fn asked(site: &Site, number: u32) -> Watched {
    let progress = Some(site.path(&format!("results/{number}/progress")));
    Watched { reports: ReportFiles { services: true, progress, usage: None }, ..watched(site, number) }
}

fn reports(site: &Site, number: u32) -> Reports {
    let key = format!("job-{number}");
    poll(site, vec![asked(site, number)]).reports.remove(&key).unwrap_or_default()
}

#[test]
fn a_running_job_tells_its_services_and_its_progress() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING") + &row(8, "RUNNING") + &row(9, "PENDING"));
    assert_eq!(reports(&site, 7), Reports::default(), "it has written nothing yet");
    for number in 7..10 {
        site.write(&format!("state/{number}/services"), "7 0 1000 model starting 900 3600;\n");
        site.write(&format!("results/{number}/progress"), "{\n  \"done\": 3\n}\n");
    }
    let answer = poll(&site, vec![asked(&site, 7), watched(&site, 8), asked(&site, 9)]);
    assert_eq!(answer.reports.keys().collect::<Vec<_>>(), ["job-7"], "the others run not, or are not asked");
    let found = &answer.reports["job-7"];
    let services = found.services.as_ref().unwrap();
    assert_eq!((services.slurm_id.get(), services.at, services.waiting.len()), (7, 1000, 1));
    assert_eq!(services.waiting[0].state, WaitingState::Starting { since: 900, limit: 3600 });
    assert_eq!(found.progress.as_deref(), Some("{   \"done\": 3 } "));
}

#[test]
fn files_that_are_no_reports_are_no_news_and_hold_up_no_one() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING") + &row(8, "RUNNING"));
    site.write("state/7/services", "x".repeat(100_000));
    site.write("results/8/progress", "42");
    let made = std::process::Command::new("mkfifo").arg(site.path("results/7/progress").as_str()).status();
    assert!(!made.unwrap().success(), "its directory is missing");
    site.write("results/7/other", "");
    let made = std::process::Command::new("mkfifo").arg(site.path("results/7/progress").as_str()).status();
    assert!(made.unwrap().success());
    let answer = poll(&site, vec![asked(&site, 7), asked(&site, 8)]);
    assert_eq!(answer.reports["job-7"], Reports::default());
    assert_eq!(answer.reports["job-8"].progress.as_deref(), Some("42"));
}

/// Attempts share the directory of their results.
#[test]
fn the_progress_of_an_earlier_run_does_not_count() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING"));
    site.write("state/7/started", "7 0 1000 node01\n");
    site.write("results/7/progress", "200");
    let file = site.path("results/7/progress");
    let set = |time: &str| {
        let touched = std::process::Command::new("touch").args(["-d", time, file.as_str()]).status();
        assert!(touched.unwrap().success());
    };
    set("1 hour ago");
    assert_eq!(reports(&site, 7).progress, None);
    set("1 hour");
    assert_eq!(reports(&site, 7).progress.as_deref(), Some("200"));
}

#[test]
fn a_running_job_that_is_asked_tells_what_it_uses() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING") + &row(8, "RUNNING") + &row(9, "PENDING"));
    let gpus: Vec<String> = (0..512).map(|index| format!("{index}:6:540:99:70000:81920")).collect();
    let text = format!("7 0 1060 1000 node01 12 300 {};\n", gpus.join(" "));
    for number in 7..10 {
        site.write(&format!("state/{number}/usage"), &text);
    }
    let asked = |number| {
        let reports = ReportFiles { usage: Some(UsageMarker::MOST_BYTES), ..ReportFiles::default() };
        Watched { reports, ..watched(&site, number) }
    };
    let answer = poll(&site, vec![asked(7), watched(&site, 8), asked(9)]);
    assert_eq!(answer.reports.keys().collect::<Vec<_>>(), ["job-7"], "the others run not, or are not asked");
    let found = answer.reports["job-7"].usage.as_ref().unwrap();
    assert_eq!((found.slurm_id.get(), found.at, found.nodes[0].gpus.len()), (7, 1060, 512));
    let few =
        Watched { reports: ReportFiles { usage: Some(400), ..ReportFiles::default() }, ..watched(&site, 7) };
    let answer = poll(&site, vec![few]);
    let cut = answer.reports["job-7"].usage.as_ref().unwrap();
    assert_eq!(cut.nodes, [], "what was cut counts for nothing");
}
