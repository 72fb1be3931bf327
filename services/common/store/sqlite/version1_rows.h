// The rows of a state store that version 1 of the schema wrote, for tests of its migration.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_VERSION1_ROWS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_VERSION1_ROWS_H_

namespace muster::sqlite {

// A run in post-processing with one pair timed out and one not, and a running one with an upload.
inline constexpr const char* kVersion1Rows = R"sql(
INSERT INTO runs VALUES ('00112233445566aa', 'request', 'a round', 'spiffe://f/user/ann', 3, '',
  1000000, 9000000, 20000000, 0, 2, 0, 1, 0, 1, 'muster.example', 30001, 1, '', '', '', 0, x'', 0,
  3, 2, 0);
INSERT INTO runs VALUES ('bbbbbbbbbbbbbbbb', '', '', 'spiffe://f/user/ann', 2, '',
  1000000, 9000000, 20000000, 0, 1, 1, 0, 0, 0, '', 0, 0, '', '', '', 0, x'', 0, 4, 0, 0);
INSERT INTO run_plugins VALUES ('00112233445566aa', 0, 'facts', 0, 0, 'raw', 'a: 1');
INSERT INTO run_authorities VALUES ('00112233445566aa', 'fleet pem', 'self pem', x'00', 999);
INSERT INTO pairs VALUES ('00112233445566aa', 'facts', 'n1', 1, 1, 1, 1),
                         ('00112233445566aa', 'facts', 'n2', 3, 1, 2, 0),
                         ('bbbbbbbbbbbbbbbb', 'facts', 'n1', 0, 0, 0, 0);
INSERT INTO results VALUES
  (1, '00112233445566aa', 'facts', 'n1', 1, 1, 1, 7, x'', '', '', '', '', '', 0, '', x'', '', 5, '',
   0, 0),
  (2, '00112233445566aa', 'facts', 'n2', 1, 3, 0, 0, x'', '', '', '', 'late', '', 0, '', x'', '', 6,
   '', 0, 0);
INSERT INTO bodies VALUES (1, x'78');
INSERT INTO changes VALUES (1, 5, 2, '00112233445566aa', 'facts', 'n1', 1, 1, 1, ''),
  (2, 6, 2, '00112233445566aa', 'facts', 'n2', 3, 1, 0, 'late'),
  (3, 6, 1, '00112233445566aa', '', '', 0, 0, 0, ''),
  (4, 6, 5, 'bbbbbbbbbbbbbbbb', '', '', 0, 0, 0, '');
INSERT INTO uploads VALUES ('0123456789abcdef', 'bbbbbbbbbbbbbbbb', 'facts', 'n1', 1, 1, 9, x'',
  '', '', 0, 'spiffe://f/node/n1', 0, '', x'', '', 7, 9000000000000000);
INSERT INTO revocations VALUES ('spiffe://f/user/bob', 'left', 'spiffe://f/user/ann', 8);
INSERT INTO issued VALUES ('ca', '01', 'spiffe://f/user/ann', 'ann', 1, 9000000000000000);
INSERT INTO audit VALUES (1, 2, 1, 'spiffe://f/user/ann', '00112233445566aa', '', '', 'created'),
  (2, 6, 3, 'spiffe://f/node/n1', '00112233445566aa', 'facts', 'n1', 'refused');
)sql";

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_VERSION1_ROWS_H_
