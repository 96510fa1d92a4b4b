//! Log-in at an issuer that a test makes up.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicI64, Ordering},
};

use axum::{
    Router,
    http::{Method, StatusCode},
};
use chrono::{DateTime, TimeDelta};
use secrecy::{ExposeSecret, SecretString};
use test_case::test_case;

use super::fake_api::{FakeApi, Shown, TOKEN, get, logged_in, send};
use crate::{Begun, Issuer, IssuerFault, Pending, Returned};

const SAME: (&str, &str) = ("sec-fetch-site", "same-origin");
/// A visitor whom the issuer's page sends back.
const BACK: [(&str, &str); 2] = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];

/// It counts its log-ins, and notes the codes that it is asked to exchange.
struct FakeIssuer {
    begun: Mutex<u32>,
    asked: Mutex<Vec<(String, String, Option<String>)>>,
    is_away: bool,
    token: Result<String, IssuerFault>,
}

impl Issuer for FakeIssuer {
    fn name(&self) -> &'static str {
        "login.example.org"
    }

    fn is_https(&self) -> bool {
        true
    }

    fn begin(&self) -> Pending<Begun> {
        let mut begun = self.begun.lock().unwrap();
        *begun += 1;
        let (state, verifier) = (format!("state-{begun}"), format!("verifier-{begun}"));
        let address = format!("https://login.example.org/auth?state={state}");
        let begun = if self.is_away {
            Err(IssuerFault::Unreachable {
                address: "https://login.example.org/<b>".into(),
                reason: "is away".into(),
            })
        } else {
            Ok(Begun { address, state: state.into(), verifier: verifier.into() })
        };
        Box::pin(async { begun })
    }

    fn finish(&self, returned: Returned) -> Pending<SecretString> {
        let Returned { code, verifier, issuer } = returned;
        let asked = (code.expose_secret().to_owned(), verifier.expose_secret().to_owned(), issuer);
        self.asked.lock().unwrap().push(asked);
        let token = self.token.clone().map(SecretString::from);
        Box::pin(async { token })
    }
}

struct Place {
    api: FakeApi,
    issuer: Arc<FakeIssuer>,
    seconds: Arc<AtomicI64>,
    console: Router,
}

fn place(is_away: bool, token: Result<String, IssuerFault>) -> Place {
    let issuer = Arc::new(FakeIssuer { begun: Mutex::default(), asked: Mutex::default(), is_away, token });
    let (api, seconds) = (FakeApi::new(), Arc::new(AtomicI64::new(1_000_000)));
    let clock = Arc::clone(&seconds);
    let now = move || DateTime::UNIX_EPOCH + TimeDelta::seconds(clock.load(Ordering::Relaxed));
    let console = api.console_at(Some(Arc::clone(&issuer) as Arc<dyn Issuer>), Arc::new(now));
    Place { api, issuer, seconds, console }
}

fn good() -> Place {
    place(false, Ok(TOKEN.to_owned()))
}

impl Place {
    fn later(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Begins a log-in, and returns the cookie to send.
    async fn begun(&self, next: &str) -> String {
        let answer = get(&self.console, &format!("/ui/login/start?next={next}"), &[SAME]).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        assert!(answer.header("location").starts_with("https://login.example.org/auth?state="));
        pair(answer.header("set-cookie")).to_owned()
    }

    async fn back(&self, query: &str, cookie: &str) -> Shown {
        let headers = [BACK.as_slice(), &[("cookie", cookie)]].concat();
        get(&self.console, &format!("/ui/login/callback?{query}"), &headers).await
    }

    fn asked(&self) -> usize {
        self.issuer.asked.lock().unwrap().len()
    }
}

fn pair(cookie: &str) -> &str {
    cookie.split(';').next().unwrap()
}

fn cookies(answer: &Shown) -> Vec<&str> {
    answer.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap()).collect()
}

/// The answer ended the log-in that had begun, and returns the rest of its cookies.
fn others<'a>(answer: &'a Shown, what: &str) -> Vec<&'a str> {
    let (ended, others): (Vec<_>, Vec<_>) = cookies(answer)
        .into_iter()
        .partition(|cookie| cookie.starts_with("tao_slurm_login_") && cookie.contains("=;"));
    assert!(matches!(ended.as_slice(), [one] if one.contains("Max-Age=0")), "{what}: {ended:?}");
    others
}

#[tokio::test]
async fn a_visitor_logs_in_at_the_issuer_and_arrives_at_the_page() {
    let place = good();
    let page = get(&place.console, "/ui/jobs?status=Error", &[]).await;
    let form = get(&place.console, page.header("location"), &[]).await.text;
    let link =
        "href=\"/ui/login/start?next=%2Fui%2Fjobs%3Fstatus%3DError\">Log in with login.example.org</a>";
    assert!(form.contains(link) && form.contains("name=\"token\"") && !form.contains("autofocus"), "{form}");
    let cookie = place.begun("/ui/jobs?status=Error").await;
    let answer = place.back("code=c%2B1&state=state-1&iss=https://login.example.org", &cookie).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    for part in ["content=\"0;url=/ui/jobs?status=Error\"", "href=\"/ui/jobs?status=Error\""] {
        assert!(answer.text.contains(part), "{}", answer.text);
    }
    let asked = place.issuer.asked.lock().unwrap().clone();
    let issuer = Some("https://login.example.org".to_owned());
    assert_eq!(asked, [("c+1".to_owned(), "verifier-1".to_owned(), issuer)]);
    let session = others(&answer, "a log-in");
    assert!(session[0].contains("; Secure") && session[0].contains("SameSite=Strict"), "{session:?}");
    let page = get(&place.console, "/ui/jobs", &[("cookie", pair(session[0]))]).await;
    assert!(page.status == StatusCode::OK && page.text.contains(">ann</bdi>"), "{}", page.text);
}

#[tokio::test]
async fn a_second_use_of_an_answer_is_refused() {
    let place = good();
    let cookie = place.begun("/ui").await;
    assert_eq!(place.back("code=c&state=state-1", &cookie).await.status, StatusCode::OK);
    // The browser has deleted its cookie.
    let again = place.back("code=c&state=state-1", "a=b").await;
    assert_eq!(again.status, StatusCode::UNAUTHORIZED);
    assert_eq!((others(&again, "again").len(), place.asked()), (0, 1));
}

#[test_case("code=c&state=state-2", 0; "of another browser")]
#[test_case("code=c", 0; "without a state")]
#[test_case("code=c&state=", 0; "with an empty state")]
#[test_case("code=c&state=state-1&state=state-1", 0; "with two states")]
#[test_case("error=access_denied&state=state-2&error_description=Call+555", 0; "an error of another browser")]
#[test_case("code=c&state=state-1", 600; "too late")]
#[tokio::test]
async fn an_answer_to_no_log_in_of_this_browser_is_refused(query: &str, seconds: i64) {
    let place = good();
    let (mine, _theirs) = (place.begun("/ui/usage").await, place.begun("/ui").await);
    place.later(seconds);
    let answer = place.back(query, &mine).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.text);
    assert!(
        answer.text.contains("did not begin in this browser") && !answer.text.contains("555"),
        "{}",
        answer.text
    );
    assert_eq!((others(&answer, query).len(), place.asked()), (0, 0));
}

#[tokio::test]
async fn two_tabs_log_in_at_the_same_time() {
    let place = good();
    let both = format!("{}; {}", place.begun("/ui/usage").await, place.begun("/ui/clusters").await);
    for (number, next) in [(2, "/ui/clusters"), (1, "/ui/usage")] {
        let answer = place.back(&format!("code=c&state=state-{number}"), &both).await;
        assert!(answer.text.contains(&format!("content=\"0;url={next}\"")), "{number}: {}", answer.text);
    }
    // A cookie under the name of another log-in is not that one.
    let swapped = both.replace("state-1=", "state-3=");
    assert_eq!(place.back("code=c&state=state-3", &swapped).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_session_and_a_log_in_that_has_begun_are_not_each_other() {
    let place = good();
    let session = logged_in(&place.console).await;
    let begun = place.begun("/ui").await;
    let swapped = begun.replace("tao_slurm_login_state-1", "tao_slurm_session");
    let page = get(&place.console, "/ui/jobs", &[("cookie", &swapped)]).await;
    assert_eq!(page.status, StatusCode::SEE_OTHER);
    let swapped = session.replace("tao_slurm_session", "tao_slurm_login_state-1");
    let answer = place.back("code=c&state=state-1", &swapped).await;
    assert_eq!((answer.status, place.asked()), (StatusCode::UNAUTHORIZED, 0));
}

#[test_case("error=access_denied", "canceled, or the issuer does not let you in"; "canceled")]
#[test_case("error=server_error&error_description=%3Cb%3Eno%E2%80%AE", "server_error</bdi>. It says: <bdi>&lt;b&gt;no<span class=\"odd\">U+202E"; "a hostile text")]
#[test_case("error=%3Cscript%3E&code=c", "refused the log-in: <bdi>&lt;script&gt;"; "a hostile code")]
#[test_case("code=", "returned no code"; "an empty code")]
#[test_case("", "returned no code"; "nothing")]
#[test_case("code=c&code=d", "returned no code"; "two codes")]
#[tokio::test]
async fn the_issuers_refusal_is_shown(query: &str, says: &str) {
    let place = good();
    let cookie = place.begun("/ui/usage").await;
    let answer = place.back(&format!("{query}&state=state-1"), &cookie).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(answer.text.contains(says), "{}", answer.text);
    assert!(answer.text.contains("/ui/login/start?next=%2Fui%2Fusage"), "the visitor can try again");
    assert_eq!((others(&answer, query).len(), place.asked()), (0, 0));
}

#[tokio::test]
async fn a_text_without_end_is_cut() {
    let place = good();
    let cookie = place.begun("/ui").await;
    let query = format!("state=state-1&error=x&error_description={}", "é".repeat(5000));
    let text = place.back(&query, &cookie).await.text;
    assert_eq!(text.matches('é').count(), 300);
}

fn unreachable() -> IssuerFault {
    IssuerFault::Unreachable { address: "https://login.example.org/<i>".into(), reason: "is away".into() }
}

#[test_case(Err(unreachable()), 502, "https://login.example.org/&lt;i&gt;"; "it is away")]
#[test_case(Err(IssuerFault::Refused("<i>invalid_grant".into())), 401, "&lt;i&gt;invalid_grant"; "a code that it does not know")]
#[test_case(Err(IssuerFault::OtherIssuer), 401, "not from the issuer"; "another issuer")]
#[test_case(Err(IssuerFault::NoToken("ID token")), 502, "returned no ID token"; "no token")]
#[test_case(Ok("tsl_bad".to_owned()), 401, "The token is unknown, expired or revoked."; "a token that the API refuses")]
#[test_case(Ok("x\r\ny: z".to_owned()), 401, "The token is unknown, expired or revoked."; "a token with lines")]
#[tokio::test]
async fn a_code_without_a_token_begins_no_session(
    token: Result<String, IssuerFault>,
    status: u16,
    says: &str,
) {
    let place = place(false, token);
    let cookie = place.begun("/ui/usage").await;
    let answer = place.back("code=c&state=state-1", &cookie).await;
    assert_eq!(answer.status, status, "{}", answer.text);
    assert!(answer.text.contains(says) && answer.text.contains("name=\"token\""), "{}", answer.text);
    assert!(!answer.text.contains("tsl_bad") && others(&answer, says).is_empty(), "{}", answer.text);
}

#[test_case(StatusCode::FORBIDDEN, "The token lacks the scope read."; "without a scope")]
#[test_case(StatusCode::SERVICE_UNAVAILABLE, "The keys cannot be read now."; "with a key that cannot be read")]
#[tokio::test]
async fn a_token_that_the_api_cannot_take_begins_no_session(status: StatusCode, detail: &str) {
    let place = good();
    place.api.refuse("/me", status, "refused", detail);
    let cookie = place.begun("/ui").await;
    let answer = place.back("code=c&state=state-1", &cookie).await;
    assert_eq!(answer.status, status);
    assert!(answer.text.contains(detail) && others(&answer, detail).is_empty(), "{}", answer.text);
}

#[tokio::test]
async fn a_token_that_does_not_fit_into_a_cookie_begins_no_session() {
    let place = place(false, Ok("x".repeat(3000)));
    place.api.answer_everybody();
    let cookie = place.begun("/ui").await;
    let answer = place.back("code=c&state=state-1", &cookie).await;
    assert!(answer.text.contains("token has 3000 bytes"), "{}", answer.text);
    assert!(others(&answer, "long").is_empty());
}

#[tokio::test]
async fn an_issuer_that_is_away_leaves_the_token_form() {
    let place = place(true, Ok(TOKEN.to_owned()));
    let answer = get(&place.console, "/ui/login/start?next=/ui/usage", &[SAME]).await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
    assert!(
        answer.text.contains("https://login.example.org/&lt;b&gt;</bdi>: <bdi>is away"),
        "{}",
        answer.text
    );
    assert!(cookies(&answer).is_empty());
    let form = format!("token={TOKEN}");
    let entered = send(&place.console, Method::POST, "/ui/login?next=/ui/usage", &[SAME], Some(&form)).await;
    assert_eq!(entered.header("location"), "/ui/usage");
}

#[tokio::test]
async fn another_site_cannot_begin_a_log_in() {
    let place = good();
    for site in ["cross-site", "same-site"] {
        let answer = get(&place.console, "/ui/login/start?next=/ui/usage", &[("sec-fetch-site", site)]).await;
        assert_eq!(answer.header("location"), "/ui/login?next=%2Fui%2Fusage", "{site}");
        assert!(cookies(&answer).is_empty());
    }
    assert_eq!(*place.issuer.begun.lock().unwrap(), 0);
}

#[tokio::test]
async fn a_log_in_leads_only_to_pages_of_ours_that_fit_into_a_cookie() {
    let place = good();
    let long = format!("/ui/jobs?q={}", "x".repeat(4000));
    for next in ["https://evil.example", "//evil.example", &long] {
        let cookie = place.begun(next).await;
        let state = format!("code=c&state=state-{}", place.issuer.begun.lock().unwrap());
        let answer = place.back(&state, &cookie).await;
        assert!(answer.text.contains("content=\"0;url=/ui\""), "{}", answer.text);
    }
}

#[tokio::test]
async fn a_session_of_the_issuer_is_renewed_there_and_leads_in_no_circle() {
    let place = good();
    let cookie = place.begun("/ui").await;
    let answer = place.back("code=c&state=state-1", &cookie).await;
    let session = pair(others(&answer, "a log-in")[0]).to_owned();
    place.api.refuse("/jobs", StatusCode::UNAUTHORIZED, "token_expired", "The token has ended.");
    let again = |cookie: String| {
        let console = place.console.clone();
        async move { get(&console, "/ui/jobs", &[("cookie", &cookie)]).await.header("location").to_owned() }
    };
    place.later(59);
    assert_eq!(
        again(session.clone()).await,
        "/ui/login?next=%2Fui%2Fjobs",
        "a token that is refused at once"
    );
    place.later(1);
    assert_eq!(again(session.clone()).await, "/ui/login/start?next=%2Fui%2Fjobs");
    let live = [
        ("cookie", session.as_str()),
        ("hx-request", "true"),
        ("hx-target", "live"),
        ("hx-current-url", "https://c/ui/jobs"),
    ];
    let live = get(&place.console, "/ui/jobs", &live).await;
    assert_eq!(live.header("hx-redirect"), "/ui/login/start?next=%2Fui%2Fjobs");
    let token = logged_in(&place.console).await;
    place.later(3600);
    assert_eq!(again(token).await, "/ui/login?next=%2Fui%2Fjobs", "a token that was entered");
}

#[tokio::test]
async fn a_log_out_is_followed_by_no_log_in() {
    let place = good();
    let cookie = place.begun("/ui").await;
    let answer = place.back("code=c&state=state-1", &cookie).await;
    let session = pair(others(&answer, "a log-in")[0]).to_owned();
    place.later(3600);
    let out = send(&place.console, Method::POST, "/ui/logout", &[SAME, ("cookie", &session)], Some("")).await;
    assert_eq!(out.header("location"), "/ui/login");
    assert!(cookies(&out)[0].starts_with("tao_slurm_session=;"));
    let form = get(&place.console, "/ui/login", &[SAME]).await;
    assert_eq!(form.status, StatusCode::OK);
    assert!(!form.text.contains("http-equiv"), "{}", form.text);
}

#[tokio::test]
async fn without_an_issuer_there_is_no_log_in_at_one() {
    let console = FakeApi::new().console();
    let form = get(&console, "/ui/login", &[]).await.text;
    assert!(!form.contains("Log in with") && form.contains("autofocus"), "{form}");
    for path in ["/ui/login/start", "/ui/login/callback?code=c&state=s"] {
        assert_eq!(get(&console, path, &[SAME]).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}
