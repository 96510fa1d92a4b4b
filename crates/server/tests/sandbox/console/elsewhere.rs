//! A page of another site.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    thread,
};

/// Serves this page on an address of its own, as long as the test's process lives.
pub(super) fn page(html: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{html}",
        html.len()
    );
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    port
}
