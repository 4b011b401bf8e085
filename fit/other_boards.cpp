#include "fit/other_boards.h"

#include <map>
#include <memory>

#include "sim/hardware/load_gpu.h"

namespace ridgeline::fit {

OtherBoard::OtherBoard(const std::string& hardware, const Software& software)
    : gpu(load_gpu(hardware)), lowering(gpu, software) {}

const OtherBoard& other_board(const std::string& hardware, const Software& software) {
  static std::map<std::string, std::unique_ptr<const OtherBoard>> boards;
  auto& board = boards[hardware];
  if (!board) board = std::make_unique<const OtherBoard>(hardware, software);
  return *board;
}

}  // namespace ridgeline::fit
