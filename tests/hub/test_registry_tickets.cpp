// Tickets: only this registry makes them, and only for a while.
#include <nlohmann/json.hpp>
#include <string>

#include "catch.hpp"
#include "hub/registry/tickets.hpp"
#include "temporary_folder.hpp"

using neuron_kernels::hub::registry::Tickets;

TEST_CASE("a ticket opens to what it was made of, also after a restart") {
  const test::TemporaryFolder folder;
  const std::string ticket = Tickets(folder.path() / "secret").issue({{"what", "put"}, {"oid", "abc"}}, 60);
  const auto right = Tickets(folder.path() / "secret").open(ticket);
  REQUIRE(right);
  CHECK(right->at("oid") == "abc");
  CHECK(ticket.find_first_not_of("0123456789abcdef.") == std::string::npos);  // fit for an address
}

TEST_CASE("altered, foreign and expired tickets do not open") {
  const test::TemporaryFolder folder, other;
  const Tickets tickets(folder.path() / "secret");
  const std::string ticket = tickets.issue({{"what", "put"}}, 60);
  for (std::size_t i = 0; i < ticket.size(); ++i) {
    std::string altered = ticket;
    altered[i] = altered[i] == '0' ? '1' : '0';
    CHECK_FALSE(tickets.open(altered));
  }
  CHECK_FALSE(tickets.open(""));
  CHECK_FALSE(tickets.open("."));
  CHECK_FALSE(Tickets(other.path() / "secret").open(ticket));
  CHECK_FALSE(tickets.open(tickets.issue({{"what", "put"}}, -1)));
}
