#include "hub/registry/tls_files.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <memory>

#include "hub/error.hpp"
#include "hub/files.hpp"

namespace neuron_kernels::hub::registry {

namespace fs = std::filesystem;

namespace {

template <auto release>
struct Release {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};
using Bio = std::unique_ptr<BIO, Release<BIO_free>>;
using Certificate = std::unique_ptr<X509, Release<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;

/// The content of the file that `option` names.
std::string content_of(const char* option, const fs::path& file) {
  try {
    return read_file(file);
  } catch (const HubError& error) {
    throw HubError(ErrorKind::usage, std::string(option) + ": " + error.what(), error.hint);
  }
}

void refuse_key_of_all(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 || (status.st_mode & S_IRWXO) == 0) return;
  throw HubError(ErrorKind::usage,
                 "--key: every user of this machine has access to " + file.string() +
                     "; allowed are its owner and its group",
                 "run chmod o= " + file.string());
}

Bio memory(const std::string& content) {
  return Bio(BIO_new_mem_buf(content.data(), static_cast<int>(content.size())));
}

/// A server has nobody to ask for a passphrase.
int no_passphrase(char*, int, int, void*) { return -1; }

}  // namespace

TlsFiles read_tls_files(const fs::path& certificate_file, const fs::path& key_file) {
  TlsFiles files{content_of("--cert", certificate_file), content_of("--key", key_file)};
  refuse_key_of_all(key_file);
  const Certificate certificate(
      PEM_read_bio_X509(memory(files.certificate).get(), nullptr, no_passphrase, nullptr));
  if (certificate == nullptr) {
    throw HubError(ErrorKind::usage,
                   "--cert: " + certificate_file.string() + " holds no certificate in PEM form",
                   "it starts with -----BEGIN CERTIFICATE-----");
  }
  const Key key(PEM_read_bio_PrivateKey(memory(files.key).get(), nullptr, no_passphrase, nullptr));
  if (key == nullptr) {
    const bool encrypted = files.key.find("ENCRYPTED") != std::string::npos;
    throw HubError(
        ErrorKind::usage,
        "--key: " + key_file.string() + (encrypted ? " is encrypted" : " holds no private key in PEM form"),
        encrypted ? "openssl pkey writes it without a passphrase"
                  : "it starts with -----BEGIN PRIVATE KEY-----");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    throw HubError(ErrorKind::usage,
                   "the key " + key_file.string() + " does not belong to the first certificate of " +
                       certificate_file.string(),
                   "the server's own certificate comes first, those that signed it after it");
  }
  ERR_clear_error();
  return files;
}

}  // namespace neuron_kernels::hub::registry
