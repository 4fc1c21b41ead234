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
    while let argument = rest.popFirst() {
      switch argument {
      case "--output": folder = rest.popFirst()
      case "--single-file": file = rest.popFirst()
      case "--name": name = rest.popFirst()
      case "--public": access = .public
      case "--check": isCheck = true
      default:
        guard model == nil, !argument.hasPrefix("-") else { return nil }
        model = argument
      }
    }
    guard model != nil, (folder == nil) != (file == nil), !isCheck || folder != nil else { return nil }
  }
}
