// kernels completion bash|zsh|fish: a script for the shell, made from the commands and options that the
// program has.
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace neuron_kernels::cli {
namespace {

struct Node {
  std::string path;   // "cache ls"; empty for the program
  std::string words;  // subcommands and options
  const CLI::App* app = nullptr;
};

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_name().empty(); });
}

void collect(const CLI::App& app, const std::string& path, std::vector<Node>& nodes) {
  Node node{.path = path, .words = {}, .app = &app};
  for (const CLI::App* command : commands_of(app)) node.words += command->get_name() + " ";
  for (const std::string& option : options_of(app)) node.words += option + " ";
  if (!path.empty()) node.words += "--json --quiet ";  // of the program, taken everywhere
  node.words.pop_back();
  nodes.push_back(node);
  for (const CLI::App* command : commands_of(app)) {
    collect(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), nodes);
  }
}

/// Without characters that a shell would read inside single quotes.
std::string plain(std::string text) {
  std::erase(text, '\'');
  return text.substr(0, text.find('\n'));
}

std::string bash_script(const std::vector<Node>& nodes) {
  std::string text =
      "_kernels() {\n"
      "  local path='' word words\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    [[ $word == -* ]] || path=\"${path:+$path }$word\"\n"
      "  done\n"
      "  while :; do\n"
      "    case \"$path\" in\n";
  for (const Node& node : nodes) text += "      '" + node.path + "') words='" + node.words + "'; break ;;\n";
  text +=
      "    esac\n"
      "    [[ $path == *' '* ]] && path=\"${path% *}\" || path=''\n"
      "  done\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
      "}\n"
      "complete -o default -F _kernels kernels\n";
  return text;
}

std::string zsh_script(const std::vector<Node>& nodes) {
  return "#compdef kernels\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_script(nodes);
}

std::string fish_script(const std::vector<Node>& nodes) {
  std::string text = "complete -c kernels -f\n";
  for (const Node& node : nodes) {
    std::string condition = "__fish_use_subcommand";
    if (!node.path.empty()) {
      condition.clear();
      std::string rest = node.path;
      for (std::size_t space = 0; space != rest.npos;) {
        space = rest.find(' ');
        condition +=
            (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + rest.substr(0, space));
        if (space != rest.npos) rest = rest.substr(space + 1);
      }
    }
    for (const CLI::App* command : commands_of(*node.app)) {
      text += "complete -c kernels -n '" + condition + "' -a " + command->get_name() + " -d '" +
              plain(command->get_description()) + "'\n";
    }
    for (const CLI::Option* option : node.app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        text += "complete -c kernels -n '" + condition + "' -l " + name + " -d '" +
                plain(option->get_description()) + "'\n";
      }
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& app, Global&) {
  CLI::App* group = app.add_subcommand("completion", completion_description);
  group->require_subcommand(1);
  const std::map<std::string, std::string (*)(const std::vector<Node>&)> scripts{
      {"bash", &bash_script}, {"zsh", &zsh_script}, {"fish", &fish_script}};
  const std::map<std::string, std::string> examples{
      {"bash",
       "  source <(kernels completion bash)\n"
       "  kernels completion bash > ~/.local/share/bash-completion/completions/kernels"},
      {"zsh", "  kernels completion zsh > \"${fpath[1]}/_kernels\""},
      {"fish", "  kernels completion fish > ~/.config/fish/completions/kernels.fish"}};
  for (const auto& [shell, script] : scripts) {
    CLI::App* command = group->add_subcommand(shell, "For " + shell);
    add_examples(*command, examples.at(shell));
    command->callback([&app, print = script] {
      std::vector<Node> nodes;
      collect(app, "", nodes);
      std::fputs(print(nodes).c_str(), stdout);
    });
  }
}

}  // namespace neuron_kernels::cli
