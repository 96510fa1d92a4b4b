use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    thread,
};

use super::*;

/// Answers each of its requests with the next of these, as they are, on a connection of its own.
fn issuer(answers: Vec<String>) -> AtAddress {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line.is_empty()), "the end of the request's head");
            // Whoever has had enough hangs up.
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    AtAddress { url, agent: agent(&Authorities::default()) }
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn keys_are_fetched_from_an_address() {
    let document = r#"{"keys": []}"#;
    assert_eq!(issuer(vec![answer("200 OK", document)]).read().await.unwrap(), document.as_bytes());
}

#[tokio::test]
async fn what_is_no_success_is_too_long_or_leads_elsewhere_is_an_error() {
    let elsewhere = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 2\r\n\r\n{}";
    let long = "x".repeat(usize::try_from(LONGEST).unwrap() + 1);
    for (sent, expected) in [
        (answer("500 Oh", "{}"), "status: 500"),
        (elsewhere.to_owned(), "the answer is 302"),
        (answer("200 OK", &long), "has more than 262144 bytes"),
    ] {
        let error = issuer(vec![sent]).read().await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let gone = AtAddress { url: "http://127.0.0.1:1/keys".to_owned(), agent: agent(&Authorities::default()) };
    assert!(gone.read().await.unwrap_err().starts_with("http://127.0.0.1:1/keys: "));
}

#[tokio::test]
async fn a_file_is_read_as_it_is_now() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let source = InFile(file.path().to_owned());
    std::fs::write(file.path(), "one").unwrap();
    assert_eq!(source.read().await.unwrap(), b"one");
    std::fs::write(file.path(), "two").unwrap();
    assert_eq!(source.read().await.unwrap(), b"two");
    assert!(InFile("/nowhere/keys".into()).read().await.unwrap_err().contains("/nowhere/keys"));
}
