//! TLS to Postgres, as `sslmode` and `sslrootcert` of `database.url` say.

use std::{net::TcpListener, os::unix::fs::chown};

use persistence::StoreError;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::*;

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut own = CertificateParams::new(Vec::new()).unwrap();
    own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(own, KeyPair::generate().unwrap()).unwrap()
}

/// A Postgres that accepts connections over TCP with TLS only.
struct TlsServer {
    server: Server,
    port: u16,
}

impl TlsServer {
    /// With a certificate for 127.0.0.1, and for no name.
    fn start(dir: &DataDir, authority: &CertifiedIssuer<'static, KeyPair>) -> Self {
        dir.start().stop().unwrap();
        let server = Server::find(dir.0.path(), &[]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, authority).unwrap();
        for (name, text) in [
            ("server.crt", certificate.pem()),
            ("server.key", key.serialize_pem()),
            ("pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n".to_owned()),
        ] {
            let path = server.data.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            chown(&path, Some(server.account.uid), None).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let options =
            format!("-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories= -c ssl=on");
        let log = fs::File::create(&server.log).unwrap();
        let started =
            server.pg_ctl("start", START_TIMEOUT).args(["-o", &options]).stdout(log).status().unwrap();
        assert!(started.success(), "{}", fs::read_to_string(&server.log).unwrap());
        Self { server, port }
    }

    /// Connects and uses the connection.
    async fn connect(&self, host: &str, parameters: &str) -> Result<(), StoreError> {
        let options = StoreOptions {
            url: format!("postgres://{NAME}@{host}:{}/{NAME}?{parameters}", self.port).into(),
            max_connections: 1,
            acquire_timeout: Duration::from_mins(2),
        };
        let store = Store::connect(&options, Sealer::from_key([0; 32])).await?;
        store.now().await?;
        store.close().await;
        Ok(())
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.server.pg_ctl("stop", STOP_TIMEOUT).args(["-m", "fast"]).status();
    }
}

#[tokio::test]
async fn the_certificate_of_the_server_is_verified_as_the_url_says() {
    let (dir, ours, another) = (DataDir::new(), authority(), authority());
    let file = |name: &str, text: String| {
        let path = dir.0.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let server = TlsServer::start(&dir, &ours);
    let (ours, another) = (file("ours.pem", ours.pem()), file("another.pem", another.pem()));
    for (host, parameters) in [
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={ours}")),
        ("localhost", format!("sslmode=verify-ca&sslrootcert={ours}")),
        ("localhost", "sslmode=require".to_owned()),
        ("localhost", String::new()),
    ] {
        server.connect(host, &parameters).await.unwrap_or_else(|error| panic!("{parameters}: {error:?}"));
    }
    for (host, parameters, why) in [
        ("127.0.0.1", "sslmode=verify-full".to_owned(), "UnknownIssuer"),
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={another}"), "BadSignature"),
        ("localhost", format!("sslmode=verify-full&sslrootcert={ours}"), "not valid for name"),
        ("127.0.0.1", "sslmode=disable".to_owned(), "no encryption"),
    ] {
        let error = server.connect(host, &parameters).await.unwrap_err();
        let error = format!("{:#}", anyhow::Error::new(error));
        assert!(error.contains(why), "{parameters}: {error}");
    }
}
