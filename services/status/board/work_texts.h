// The room for the texts of a pair: what its sender reports is kept in full while there is memory.
#ifndef MUSTER_SERVICES_STATUS_BOARD_WORK_TEXTS_H_
#define MUSTER_SERVICES_STATUS_BOARD_WORK_TEXTS_H_

#include "services/status/board/pair.h"
#include "services/status/board/text_budget.h"

namespace muster {

// Reserves memory for the texts of a pair with a Work, after one of them has changed. Without room
// for them the pair keeps as much as it had: the beginnings of long texts, which then end with "…",
// and the newest names. Progress counts the other names. Returns whether the reserved memory has
// changed: if the pair received the same texts again, it then has more or less of them than before.
bool FitTexts(Pair& pair, TextBudget& run);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_WORK_TEXTS_H_
