import HoldfastModelCode

/// The command line.
struct Arguments {
  var model: String?
  var folder: String?
  var file: String?
  var name: String?
  var access = ModelCode.Access.internal
  var isCheck = false

  static let usage = """
    usage: holdfast-generate MODEL (--output DIRECTORY [--check] | --single-file FILE) [--name NAME] [--public]

    """

  /// Returns nil if the arguments are invalid.
  init?(_ arguments: [String]) {
    var rest = arguments[...]
    var isComplete = true
    /// Returns the value of an option. Another option isn't one: a folder or a model with such a name can be written as `./--check`.
    func value() -> String? {
      let value = rest.popFirst()
      if value?.hasPrefix("-") != false { isComplete = false }
      return value
    }
    while let argument = rest.popFirst() {
      switch argument {
      case "--output": folder = value()
      case "--single-file": file = value()
      case "--name": name = value()
      case "--public": access = .public
      case "--check": isCheck = true
      default:
        guard model == nil, !argument.hasPrefix("-") else { return nil }
        model = argument
      }
    }
    guard isComplete, model != nil, (folder == nil) != (file == nil), !isCheck || folder != nil else { return nil }
  }
}
