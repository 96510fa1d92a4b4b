use super::*;

fn host(name: &str) -> HostPort {
    name.parse().expect("a host")
}

fn down(name: &str) -> SshError {
    SshError::cannot_connect(&host(name), "no route")
}

fn refused(name: &str) -> SshError {
    SshError::AuthRefused {
        host: host(name),
        user: "me".to_owned(),
        tried: vec!["a key".to_owned()],
        reason: "no".to_owned(),
    }
}

fn three() -> (SshConfig, Hosts) {
    let config = SshConfig::new("me", vec![host("a"), host("b"), host("c")]);
    let hosts = Hosts::new(&config.hosts);
    (config, hosts)
}

#[test]
fn the_configured_order_counts_until_a_session_is_open() {
    let (config, hosts) = three();
    assert_eq!(hosts.candidates(None, &config), [0, 1, 2]);
    hosts.begin_connect(1).expect("a turn");
    hosts.connected(1);
    assert_eq!(hosts.candidates(None, &config), [1, 0, 2], "the second session chose another host");
    hosts.disconnected();
    assert_eq!(hosts.candidates(None, &config), [0, 1, 2], "the configured order no longer counts");
}

#[test]
fn a_host_whose_link_was_lost_comes_last_but_is_not_left_alone() {
    let (config, hosts) = three();
    assert_eq!(hosts.candidates(Some(&host("a")), &config), [1, 2, 0]);
}

#[test]
fn a_failed_host_is_left_alone_and_a_success_clears_its_failures() {
    let (config, hosts) = three();
    hosts.begin_connect(0).expect("a turn");
    hosts.failed(0, down("a"), &config);
    assert_eq!(hosts.candidates(None, &config), [1, 2]);
    assert!(
        matches!(hosts.health()[0].state, HostState::Down { .. }) && hosts.health()[0].next_try.is_some()
    );
    hosts.connected(0);
    assert_eq!(hosts.candidates(None, &config), [0, 1, 2]);
    let health = &hosts.health()[0];
    assert!(health.state == HostState::Up && health.next_try.is_none() && health.last_error.is_some());
}

#[test]
fn hosts_are_out_of_reach_while_all_have_failed_and_no_session_is_open() {
    let (config, hosts) = three();
    for index in 0..3 {
        assert!(!hosts.are_out_of_reach(&config), "a host may be tried");
        hosts.failed(index, down("a"), &config);
    }
    assert!(hosts.are_out_of_reach(&config));
    hosts.connected(1);
    hosts.failed(1, down("b"), &config);
    assert!(!hosts.are_out_of_reach(&config), "a session is open");
    hosts.disconnected();
    assert!(hosts.are_out_of_reach(&config));
}

#[test]
fn since_is_the_first_failure_in_a_row_and_another_kind_of_failure_starts_a_new_row() {
    let (config, hosts) = three();
    let since = |hosts: &Hosts| match hosts.health()[0].state {
        HostState::Down { since } | HostState::AuthRefused { since } => Some(since),
        _ => None,
    };
    hosts.failed(0, down("a"), &config);
    let first = since(&hosts);
    hosts.failed(0, down("a"), &config);
    assert_eq!(since(&hosts), first);
    hosts.failed(0, refused("a"), &config);
    assert!(since(&hosts) > first && matches!(hosts.health()[0].state, HostState::AuthRefused { .. }));
}

#[test]
fn connects_to_one_host_are_spaced_and_other_hosts_do_not_wait() {
    let many: Vec<_> = (0..100).map(|number| host(&format!("login{number}"))).collect();
    let hosts = Hosts::new(&many);
    let begun = Instant::now();
    for index in 1..100 {
        hosts.begin_connect(index).expect("a turn");
    }
    // All together, so that a pause of the machine does not matter.
    assert!(begun.elapsed() < 90 * PACE, "{:?}", begun.elapsed());
    let begun = Instant::now();
    hosts.begin_connect(0).expect("a turn");
    hosts.connected(0);
    hosts.begin_connect(0).expect("a turn");
    assert!(begun.elapsed() >= PACE, "only {:?} apart", begun.elapsed());
    assert_eq!(hosts.counts().1, 101);
}

#[test]
fn a_thread_that_waits_for_a_failed_connect_does_not_retry_the_same_host() {
    let (config, hosts) = three();
    hosts.begin_connect(0).expect("a turn");
    let second = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| hosts.begin_connect(0));
        // Nothing has changed: a thread that is woken waits again.
        while !hosts.changed.notify_one() {
            std::thread::yield_now();
        }
        hosts.failed(0, down("a"), &config);
        waiting.join().expect("no panic")
    });
    assert_eq!(second, None);
}

#[test]
fn the_error_keeps_its_kind_only_if_every_failure_needs_a_person() {
    let (config, hosts) = three();
    hosts.failed(0, refused("a"), &config);
    hosts.failed(1, refused("b"), &config);
    assert_eq!(hosts.verdict(), refused("a"));
    hosts.failed(2, down("c"), &config);
    let SshError::Unreachable { failures } = hosts.verdict() else { panic!("not a mixture") };
    let names: Vec<String> = failures.iter().map(|failure| failure.host.to_string()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(failures[0].advice.contains("authorized_keys"));
}

#[test]
fn network_pauses_double_from_a_second_to_a_minute() {
    let seconds: Vec<u64> = [1, 2, 3, 6, 7, 31, 32, 33, 500].map(|n| doubled(n).as_secs()).into();
    assert_eq!(seconds, [1, 2, 4, 32, 60, 60, 60, 60, 60]);
}

#[test]
fn a_host_that_refused_us_is_left_alone_for_minutes() {
    let pause = pause(&SshError::NoKey, 1);
    assert!((240..=360).contains(&pause.as_secs()), "{pause:?}");
}
