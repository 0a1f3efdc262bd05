#include "cli/report_page.h"

#include <fmt/format.h>

#include "cli/program.h"
#include "cli/report_chart.h"
#include "cli/report_style.inc"

namespace sluice::cli {

// The content security policy enforces what the page promises: it loads nothing and runs nothing.
std::string page(const std::string& title, const std::string& source, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'\">\n<title>{0} - {1}</title>\n<style>{2}</style>\n</head>\n"
      "<body>\n<main>\n<header><h1>{0}</h1>\n<p class=\"source\">{1}</p></header>\n{3}"
      "<footer>Made by sluice {4}.</footer>\n</main>\n</body>\n</html>\n",
      escaped(title), escaped(source), kReportStyle, body, kProgramVersion);
}

std::string tiles_html(const std::vector<Tile>& tiles) {
  std::string text = "<ul class=\"tiles\">\n";
  for (const Tile& tile : tiles) {
    text += fmt::format(
        "<li class=\"{}\"><span class=\"name\">{}</span><span class=\"value\">{}</span>"
        "<span class=\"hint\">{}</span></li>\n",
        tile.tone, escaped(tile.name), escaped(tile.value), escaped(tile.note));
  }
  return text + "</ul>\n";
}

}  // namespace sluice::cli
