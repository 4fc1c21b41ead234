/// Versions that a command asks for. One that cannot be read is an error: no other takes its place, and none is left out.
extension ModelSource {
  /// The version of a name; the one in use unless a name is given.
  func version(_ name: String?) throws(CommandError) -> Version {
    if let found = versions.first(where: { $0.name == name ?? currentName }) { return found }
    guard let name else { throw unreadableError("The version in use, \(currentName), cannot be read.", [currentName]) }
    if unreadable.contains(where: { $0.name == name }) { throw unreadableError("The version \(name) cannot be read.", [name]) }
    throw CommandError(path: path, reason: "There is no version \(name). There are \(readableNames).")
  }

  /// All versions.
  func allVersions() throws(CommandError) -> [Version] {
    let names = unreadable.map(\.name)
    if names.isEmpty { return versions }
    let what = names.count == 1 ? "The version \(names[0])" : "The versions \(names.joined(separator: ", "))"
    throw unreadableError("\(what) cannot be read, so nothing is written that would lack \(names.count == 1 ? "it" : "them").", names)
  }

  private var readableNames: String { versions.map(\.name).joined(separator: ", ") }

  /// What is wrong with versions, each with its reason.
  private func unreadableError(_ reason: String, _ names: [String]) -> CommandError {
    let found = unreadable.filter { names.contains($0.name) }
    let reasons = found.count > 1 ? found.map { " \($0.name): \($0.error)" }.joined() : ""
    return CommandError(
      path: path, reason: "\(reason) Those that can be asked for with --version are \(readableNames).\(reasons)",
      cause: found.count == 1 ? found[0].error : nil)
  }
}
