//! A TCP relay that can stop carrying data, like a network with an unplugged cable.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use ssh::HostPort;

pub(crate) struct Proxy {
    pub(crate) port: u16,
    silent: Arc<AtomicBool>,
    door: Option<Arc<Barrier>>,
}

impl Proxy {
    pub(crate) fn to(host: &HostPort) -> Self {
        Self::with_door(host, None)
    }

    /// A relay that holds its first connection until [`open`](Self::open).
    pub(crate) fn closed_to(host: &HostPort) -> Self {
        Self::with_door(host, Some(Arc::new(Barrier::new(2))))
    }

    fn with_door(host: &HostPort, door: Option<Arc<Barrier>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let target = (host.host().to_owned(), host.port());
        let silent = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&silent);
        let mut closed = door.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if let Some(door) = closed.take() {
                    door.wait();
                }
                // Later connections work again.
                flag.store(false, Ordering::SeqCst);
                let Ok(server) = TcpStream::connect((target.0.as_str(), target.1)) else { continue };
                let mine = Arc::new(AtomicBool::new(false));
                relay(&client, &server, &flag, &mine);
                relay(&server, &client, &flag, &mine);
            }
        });
        Self { port, silent, door }
    }

    /// Waits for the first connection and lets it through.
    pub(crate) fn open(&self) {
        if let Some(door) = &self.door {
            door.wait();
        }
    }

    /// From now on, existing connections carry no data, and neither side notices.
    pub(crate) fn stop_carrying_data(&self) {
        self.silent.store(true, Ordering::SeqCst);
    }
}

fn relay(from: &TcpStream, to: &TcpStream, silent: &Arc<AtomicBool>, mine: &Arc<AtomicBool>) {
    let (mut from, mut to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
    let (silent, mine) = (Arc::clone(silent), Arc::clone(mine));
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if silent.load(Ordering::SeqCst) {
                mine.store(true, Ordering::SeqCst);
            }
            if !mine.load(Ordering::SeqCst) && to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        if !mine.load(Ordering::SeqCst) {
            let _ = to.shutdown(Shutdown::Both);
        }
    });
}
