use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Mutex, PoisonError},
    thread,
};

use secrecy::ExposeSecret;
use serde_json::json;

use super::{client::tests::config, *};
use crate::config::TokenKind;

/// An issuer that notes its requests: each with its path and its body.
#[derive(Clone)]
struct FakeIssuer {
    url: String,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl FakeIssuer {
    /// The answers to requests for the document, one each, then a good one.
    fn start(documents: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let issuer = Self { url, asked: Arc::default() };
        let (served, documents) = (issuer.clone(), documents.to_vec());
        thread::spawn(move || {
            let mut documents = documents.into_iter();
            for stream in listener.incoming().map_while(Result::ok) {
                served.answer(&stream, &mut documents);
            }
        });
        issuer
    }

    fn answer(&self, stream: &TcpStream, documents: &mut impl Iterator<Item = &'static str>) {
        let mut reader = BufReader::new(stream);
        let mut head = Vec::new();
        while let Some(line) = read_line(&mut reader) {
            head.push(line);
        }
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).unwrap();
        let path = head[0].split(' ').nth(1).unwrap().to_owned();
        let url = &self.url;
        let answer = if path == "/token" {
            ok(&json!({"access_token": "a.b.c", "token_type": "Bearer"}).to_string())
        } else {
            let good = json!({"issuer": url, "authorization_endpoint": format!("{url}/auth"), "token_endpoint": format!("{url}/token")});
            documents.next().map_or_else(|| ok(&good.to_string()), str::to_owned)
        };
        let body = String::from_utf8(body).unwrap();
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push((path, body));
        // The client may close the connection early.
        let _ = (&*stream).write_all(answer.as_bytes());
    }

    fn paths(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().map(|(path, _)| path.clone()).collect()
    }

    fn console(&self) -> Arc<dyn Issuer> {
        issuer(config(&self.url, TokenKind::AccessToken))
    }
}

fn read_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    Some(line.trim_end().to_owned()).filter(|line| !line.is_empty())
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn returned() -> Returned {
    Returned { code: "the-code".into(), verifier: "the-verifier".into(), issuer: None }
}

const DOCUMENT: &str = "/.well-known/openid-configuration";

#[tokio::test]
async fn the_document_is_read_once_for_many_log_ins() {
    let issuer = FakeIssuer::start(&[]);
    let console = issuer.console();
    assert_eq!((console.name(), console.is_https()), ("127.0.0.1", true));
    for _ in 0..3 {
        assert!(console.begin().await.unwrap().address.starts_with(&format!("{}/auth?", issuer.url)));
    }
    assert_eq!(console.finish(returned()).await.unwrap().expose_secret(), "a.b.c");
    assert_eq!(issuer.paths(), [DOCUMENT, "/token"]);
    let body = issuer.asked.lock().unwrap()[1].1.clone();
    assert!(body.contains("code=the-code") && body.contains("code_verifier=the-verifier"), "{body}");
}

#[tokio::test(start_paused = true)]
async fn the_document_is_read_again_after_an_hour() {
    let issuer = FakeIssuer::start(&[]);
    let console = issuer.console();
    console.begin().await.unwrap();
    tokio::time::advance(KEEP).await;
    console.begin().await.unwrap();
    assert_eq!(issuer.paths(), [DOCUMENT; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_kept_for_the_pause_alone() {
    let issuer = FakeIssuer::start(&["HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n"]);
    let console = issuer.console();
    for _ in 0..3 {
        let fault = console.begin().await.unwrap_err();
        let address = format!("{}{DOCUMENT}", issuer.url);
        let reason = "the response is 500 Internal Server Error".to_owned();
        assert_eq!(fault, IssuerFault::Unreachable { address, reason });
    }
    assert_eq!(issuer.paths().len(), 1);
    tokio::time::advance(PAUSE).await;
    console.begin().await.unwrap();
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_a_long_document_is_not_read() {
    let long = ok(&"x".repeat(300 * 1024)).leak();
    for (answer, expected) in [
        ("HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 2\r\n\r\n{}", "the response is 302"),
        (&*long, "has more than 262144 bytes"),
    ] {
        let issuer = FakeIssuer::start(&[answer]);
        let fault = issuer.console().begin().await.unwrap_err().to_string();
        assert!(fault.contains(expected), "{fault}");
        assert_eq!(issuer.paths(), [DOCUMENT]);
    }
}

#[tokio::test]
async fn the_answer_of_another_issuer_costs_no_request_with_the_code() {
    let issuer = FakeIssuer::start(&[]);
    let answer = Returned { issuer: Some("https://evil.example".to_owned()), ..returned() };
    assert_eq!(issuer.console().finish(answer).await.unwrap_err(), IssuerFault::OtherIssuer);
    assert_eq!(issuer.paths(), [DOCUMENT]);
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_is_a_failure_of_the_service() {
    let issuer = FakeIssuer::start(&[]);
    let secret_file = Some("/nowhere/secret".into());
    let console = super::issuer(LogInConfig { secret_file, ..config(&issuer.url, TokenKind::AccessToken) });
    let fault = console.finish(returned()).await.unwrap_err().to_string();
    assert!(fault.starts_with("auth.jwt.login.client_secret_file: cannot be read (No such file"), "{fault}");
    assert_eq!(issuer.paths(), [DOCUMENT]);
}

#[tokio::test]
async fn an_issuer_that_is_away_is_named() {
    let console = issuer(config("http://127.0.0.1:1", TokenKind::AccessToken));
    let fault = console.begin().await.unwrap_err().to_string();
    assert!(fault.starts_with(&format!("http://127.0.0.1:1{DOCUMENT}: ")), "{fault}");
}
