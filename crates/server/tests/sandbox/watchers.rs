//! Many watchers, through restarts of the service, without commands on the cluster.

use std::{
    collections::HashMap,
    io::{Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::task::JoinSet;

mod client;

use client::Watcher;

use crate::{
    cluster::sql,
    ending::{command, held},
    service::{Service, until},
};

const JOBS: usize = 100;
/// Watchers of each job.
const WATCHERS: usize = 9;
/// Watchers of all jobs.
const WATCHERS_OF_ALL: usize = 100;
const EVERYBODY: f64 = 1000.0;
/// Database sessions that each change a quarter of the jobs.
const WRITERS: usize = 4;

/// Changes all jobs `rounds` times. The writers' transactions overlap and end in another order than they began. One more
/// transaction changes every job once.
fn write(service: &Service, rounds: usize) -> Vec<Child> {
    let writer = |number: usize| {
        let text = format!(
            "do $$ begin
                 for round in 1..{rounds} loop
                     update jobs j set attempt = attempt + 1, version = version + 1
                     from (select id, row_number() over (order by id) as n from jobs) m
                     where m.id = j.id and m.n % {WRITERS} = {number};
                     perform pg_sleep(random() * 0.05);
                     commit;
                 end loop;
             end $$"
        );
        let mut psql = Command::new("psql");
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", &service.database_url, "-c", &text]);
        psql.spawn().unwrap()
    };
    (0..WRITERS).map(writer).collect()
}

fn written(writers: Vec<Child>) {
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
}

/// The commands of the API's own connections to the cluster, and the logins of all processes.
fn cost(service: &Service) -> (u64, usize) {
    let cluster = service.get("/clusters/sandbox").json();
    (cluster["ssh"]["commands_total"].as_u64().unwrap(), service.sandbox.logins())
}

/// Every event of a job from `first` to `last`, once and in order.
fn is_whole(seqs: &[u64], first: u64, last: u64) -> bool {
    seqs.iter().copied().eq(first..=last)
}

#[test]
fn a_thousand_watchers_get_each_event_once_and_in_order_through_restarts_without_load_on_the_cluster() {
    // Each connection is an open file here; the service raises its own limit.
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }).unwrap();
    let mut service = Service::prepare(&[]);
    service.role = "api";
    service.spawn();
    let ids: Vec<String> = (0..JOBS).map(|_| service.submit(&command("true"))).collect();
    let before = cost(&service);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (mut watchers, listening) = (JoinSet::new(), Arc::new(AtomicUsize::new(0)));
    let (rounds, url) = ([6, 6, 6], service.url.clone());
    let last = 1 + rounds.iter().sum::<usize>() as u64 + 1;
    for id in &ids {
        for _ in 0..WATCHERS {
            let mut watcher = Watcher::new(&url, &format!("/jobs/{id}/events"), Arc::clone(&listening));
            watchers.spawn_on(
                async move {
                    watcher.watch(|_| false).await;
                    watcher
                },
                runtime.handle(),
            );
        }
    }
    for _ in 0..WATCHERS_OF_ALL {
        let mut watcher = Watcher::new(&url, "/events", Arc::clone(&listening));
        let all = JOBS * usize::try_from(last - 1).unwrap();
        watchers.spawn_on(
            async move {
                watcher.watch(|watcher| watcher.events.len() == all).await;
                watcher
            },
            runtime.handle(),
        );
    }
    // The service counts accepted watchers; a watcher may not have received the response yet.
    let everybody = |service: &Service| {
        until("all watchers", Duration::from_mins(1), || {
            service.metric("tao_slurm_watchers{", "") >= EVERYBODY
                && listening.load(Ordering::Relaxed) == JOBS * WATCHERS + WATCHERS_OF_ALL
        });
    };
    everybody(&service);

    let reads = service.metric("tao_slurm_outbox_reads_total", "");
    let began = Instant::now();
    written(write(&service, rounds[0]));
    let commits = f64::from(u32::try_from(rounds[0] * WRITERS).unwrap());
    // One read for each commit, another if a notification arrived during it, and those of the timer.
    let allowed = commits * 4.0 + began.elapsed().as_secs_f64() + 10.0;
    let reads = service.metric("tao_slurm_outbox_reads_total", "") - reads;
    assert!(reads <= allowed, "{reads} looks for {commits} commits: the watchers are not to look themselves");

    // The service is stopped and killed in the middle, and restarted each time, while jobs change.
    let writers = write(&service, rounds[1]);
    assert!(service.stop().success());
    assert!(!service.log_text().contains("aborting the remaining tasks"), "the watchers held up the end");
    written(writers);
    service.spawn();
    everybody(&service);
    let writers = write(&service, rounds[2]);
    service.kill();
    service.spawn();
    written(writers);
    sql(
        &service.database_url,
        "update jobs set status = 'Done', phase = 'ended', finished_at = now(), due_at = null, version = version + 1",
    );

    let watchers =
        runtime.block_on(async { tokio::time::timeout(Duration::from_mins(2), watchers.join_all()).await });
    let watchers = watchers.expect("every watcher has got everything");
    assert_eq!(watchers.len(), JOBS * WATCHERS + WATCHERS_OF_ALL);
    for watcher in &watchers {
        let mut of_jobs: HashMap<&str, Vec<u64>> = HashMap::new();
        for event in watcher.events.iter().filter(|event| event.name == "transition") {
            of_jobs.entry(&event.job).or_default().push(event.seq);
        }
        assert!(watcher.events.iter().all(|event| event.name != "reset"));
        assert!(
            watcher.events.is_sorted_by(|one, next| one.id < next.id || next.name == "end"),
            "{watcher:?}"
        );
        let is_of_all = of_jobs.len() > 1;
        assert_eq!(of_jobs.len(), if is_of_all { JOBS } else { 1 });
        let first = if is_of_all { 2 } else { 1 };
        for (job, seqs) in of_jobs {
            assert!(is_whole(&seqs, first, last), "{job}: {seqs:?}");
        }
        assert!(is_of_all || watcher.events.last().unwrap().name == "end");
        assert!(watcher.streams >= 3, "{} streams: it was cut off twice", watcher.streams);
        let goodbyes =
            watcher.comments.iter().filter(|comment| comment.contains("the service stops")).count();
        assert_eq!(goodbyes, 1, "{:?}", watcher.comments);
    }
    // The new process counts from 0; the logins are those of the cluster.
    assert_eq!(cost(&service), (0, before.1), "before: {before:?}");
    assert_eq!(before.0, 0);
}

#[test]
fn the_command_line_follows_events_through_a_restart_of_the_service() {
    let mut service = Service::start();
    let mut follow_all = service.command(&["events", "--follow", "-o", "json"]);
    let mut follow_all = follow_all.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until("a watcher", Duration::from_secs(20), || service.metric("tao_slurm_watchers{", "all") >= 1.0);
    let id = service.submit(&held("true"));
    let follow =
        service.command(&["events", &id, "--follow"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let watch =
        service.command(&["status", &id, "--watch"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    service.wait(&id, "running", |s| s["status"] == "Running");
    until("a waiting request", Duration::from_secs(20), || {
        service.metric("tao_slurm_watchers{", "wait") >= 1.0
    });
    assert!(service.stop().success());
    assert!(!service.log_text().contains("aborting the remaining tasks"), "the watchers held up the end");
    service.let_go(&id);
    service.spawn();
    let (followed, watched) =
        (follow.unwrap().wait_with_output().unwrap(), watch.unwrap().wait_with_output().unwrap());
    assert!(followed.status.success() && watched.status.success());
    let (followed, watched) =
        (String::from_utf8(followed.stdout).unwrap(), String::from_utf8(watched.stdout).unwrap());
    let numbers: Vec<u64> =
        followed.lines().map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect();
    assert!(is_whole(&numbers, 1, numbers.len() as u64) && numbers.len() >= 4, "{followed}");
    assert!(followed.lines().last().unwrap().contains("Done ended"), "{followed}");
    assert!(watched.contains("Running") && watched.lines().last().unwrap().starts_with("Done"), "{watched}");
    // The command for all jobs runs until it is stopped, and has printed the same.
    let mut lines = String::new();
    let mut stdout = follow_all.stdout.take().unwrap();
    while lines.matches("\"ended\"").count() == 0 {
        let mut some = [0; 4096];
        let read = stdout.read(&mut some).unwrap();
        assert!(read > 0, "it ended by itself: {lines}");
        lines.push_str(str::from_utf8(&some[..read]).unwrap());
    }
    follow_all.kill().unwrap();
    follow_all.wait().unwrap();
    assert_eq!(lines.lines().count(), numbers.len(), "{lines}");
}

#[test]
fn a_stopping_service_answers_waiting_requests_and_ends_streams() {
    let mut service = Service::prepare(&[]);
    service.role = "api";
    service.spawn();
    let id = service.submit(&command("true"));
    let address = service.url.trim_start_matches("http://").to_owned();
    let ask = |path: String| {
        let mut connection = TcpStream::connect(&address).unwrap();
        write!(connection, "GET {path} HTTP/1.0\r\naccept: text/event-stream\r\n\r\n").unwrap();
        connection
    };
    let mut asked = [
        ask(format!("/jobs/{id}/status?wait=60")),
        ask(format!("/jobs/{id}/events")),
        ask("/events".to_owned()),
    ];
    until("all of them", Duration::from_secs(20), || service.metric("tao_slurm_watchers{", "") >= 3.0);
    assert!(service.stop().success());
    let answers = asked.each_mut().map(|connection| {
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    });
    assert!(
        answers[0].starts_with("HTTP/1.0 200") && answers[0].contains("\"status\":\"Pending\""),
        "{answers:?}"
    );
    for stream in &answers[1..] {
        assert!(
            stream.starts_with("HTTP/1.0 200") && stream.ends_with("reconnect with Last-Event-ID\n\n"),
            "{stream}"
        );
    }
    assert_eq!(json!(service.log_text().contains("aborting the remaining tasks")), json!(false));
}
