use test_case::test_case;

use super::*;

const SECRET_TEXT: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

fn networks(texts: &[&str]) -> Networks {
    Networks::new(texts.iter().map(|text| text.parse().unwrap()).collect())
}

fn refused(url: &str, secret: &str, allowed: &[&str]) -> Vec<String> {
    let request = WebhookRequest { url: url.to_owned(), secret: secret.to_owned() };
    let faults = Webhook::from_request(&request, &networks(allowed)).err().unwrap_or_default();
    faults.into_iter().map(|fault| fault.pointer).collect()
}

#[test_case("https://example.org/hook", &[], true ; "a public name")]
#[test_case("https://93.184.216.34:8443/", &[], true ; "a public address")]
#[test_case("http://example.org/hook", &[], false ; "in the open")]
#[test_case("http://example.org/hook", &["10.0.0.0/8"], true ; "in the open, where a network is vouched for")]
#[test_case("http://93.184.216.34/", &["10.0.0.0/8"], false ; "in the open, at an address beside it")]
#[test_case("http://10.1.2.3/", &["10.0.0.0/8"], true ; "in the open, in the network")]
#[test_case("ftp://example.org/", &["10.0.0.0/8"], false ; "another protocol")]
#[test_case("https://user:pass@example.org/", &[], false ; "with a password")]
#[test_case("https://127.0.0.1/", &[], false ; "loopback")]
#[test_case("https://2130706433/", &[], false ; "loopback as one number")]
#[test_case("https://0x7f.1/", &[], false ; "loopback in hexadecimal")]
#[test_case("https://[::1]/", &[], false ; "loopback of IPv6")]
#[test_case("https://[::ffff:10.0.0.1]/", &[], false ; "a private address in IPv6")]
#[test_case("https://10.1.2.3/", &["10.1.0.0/16"], true ; "a private address that is allowed")]
#[test_case("https://10.2.2.3/", &["10.1.0.0/16"], false ; "a private address beside it")]
#[test_case("example.org", &[], false ; "no address")]
#[test_case("", &[], false ; "nothing")]
fn an_address_is_one_that_may_be_called(url: &str, allowed: &[&str], good: bool) {
    assert_eq!(refused(url, SECRET_TEXT, allowed).is_empty(), good);
}

#[test_case("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", true ; "24 bytes")]
#[test_case("C2FVsBQIhrscChlQIMV+b5sSYspob7oD", false ; "without its prefix")]
#[test_case("whsec_aHVudGVyMg==", false ; "too short to be a key")]
#[test_case("whsec_hunter2!", false ; "no base64")]
fn a_secret_is_a_key(secret: &str, good: bool) {
    assert_eq!(refused("https://example.org/", secret, &[]).is_empty(), good);
}

#[test]
fn both_faults_come_at_once() {
    assert_eq!(refused("", "", &[]), ["/webhook/url", "/webhook/secret"]);
}

#[test_case("8.8.8.8", true)]
#[test_case("172.15.0.1", true ; "below a private network")]
#[test_case("172.16.0.1", false)]
#[test_case("172.31.255.255", false)]
#[test_case("172.32.0.1", true ; "above it")]
#[test_case("100.64.0.1", false ; "behind a carrier")]
#[test_case("169.254.169.254", false ; "a cloud's own metadata")]
#[test_case("0.0.0.0", false)]
#[test_case("224.0.0.1", false)]
#[test_case("255.255.255.255", false)]
#[test_case("2606:4700::1111", true)]
#[test_case("::", false)]
#[test_case("fe80::1", false)]
#[test_case("fd00::1", false)]
#[test_case("64:ff9b::a00:1", false ; "10.0.0.1 behind a translator")]
#[test_case("2002:a00:1::", false ; "10.0.0.1 in 6to4")]
#[test_case("ff02::1", false)]
fn public_addresses_are_told_from_all_others(address: &str, public: bool) {
    assert_eq!(Networks::default().allow(address.parse().unwrap()), public);
}

#[test_case("10.0.0.0/8", true)]
#[test_case("::/0", true)]
#[test_case("10.0.0.0/33", false)]
#[test_case("10.0.0.0", false)]
#[test_case("localhost/8", false)]
fn a_network_is_an_address_and_bits(text: &str, good: bool) {
    assert_eq!(text.parse::<ipnet::IpNet>().is_ok(), good);
}

#[test]
fn a_network_of_no_bits_is_all_of_its_kind() {
    let all = networks(&["0.0.0.0/0"]);
    assert!(all.allow("127.0.0.1".parse().unwrap()) && !all.allow("::1".parse().unwrap()));
}

#[test]
fn waits_double_up_to_an_hour_and_end() {
    let longest = |attempts| webhook_wait(attempts, 15, 1.0, None).map(|wait| wait.num_seconds());
    assert_eq!([1, 2, 3, 10, 14].map(longest), [Some(5), Some(10), Some(20), Some(2560), Some(3600)]);
    assert_eq!(longest(15), None);
    assert_eq!(webhook_wait(u32::MAX - 1, u32::MAX, 1.0, None), Some(TimeDelta::hours(1)));
    // Never at once, and never all together.
    assert_eq!(webhook_wait(1, 15, 0.0, None), Some(TimeDelta::milliseconds(2500)));
}

#[test]
fn a_receiver_is_left_alone_for_as_long_as_he_asks_but_not_for_ever() {
    let wait = |attempts, jitter, asked| {
        webhook_wait(attempts, 15, jitter, Some(TimeDelta::seconds(asked)))
            .map(|wait| wait.num_milliseconds())
    };
    assert_eq!(wait(1, 0.0, 60), Some(60_000));
    assert_eq!(wait(1, 1.0, 60), Some(62_500), "not all together");
    assert_eq!(wait(1, 0.0, 1), Some(2500), "nor sooner than without");
    assert_eq!(wait(9, 0.0, 60), Some(640_000));
    assert_eq!(wait(1, 1.0, i64::from(u32::MAX)), Some(3_600_000));
    assert_eq!(wait(1, 0.0, -9), Some(2500));
    assert_eq!(wait(15, 0.0, 60), None, "asking to be asked later is no promise to take it");
}

#[test]
fn what_a_receiver_asks_is_seconds_or_a_moment() {
    let now = DateTime::from_timestamp(1_445_412_480, 0).unwrap();
    let seconds = |text| retry_after(text, now).map(|asked| asked.num_seconds());
    assert_eq!(seconds(" 120 "), Some(120));
    assert_eq!(seconds("0"), Some(0));
    assert_eq!(seconds("Wed, 21 Oct 2015 07:28:30 GMT"), Some(30));
    assert_eq!(seconds("Wed, 21 Oct 2015 07:27:00 GMT"), Some(-60));
    assert_eq!(seconds("99999999999999"), Some(i64::from(u32::MAX)));
    for unreadable in ["", "-1", "1.5", "soon", "120s"] {
        assert_eq!(seconds(unreadable), None, "{unreadable:?}");
    }
}
