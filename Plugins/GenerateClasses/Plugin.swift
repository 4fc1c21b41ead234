import Foundation
import PackagePlugin

/// `swift package generate-classes [--target NAME] [--public] [--check]`: writes classes for the models in a package's targets.
///
/// The classes of `Kennel.xcdatamodeld` go into the folder `Kennel` beside it.
@main struct GenerateClasses: CommandPlugin {
  func performCommand(context: PluginContext, arguments: [String]) throws {
    var extractor = ArgumentExtractor(arguments)
    let names = extractor.extractOption(named: "target")
    let options = extractor.remainingArguments
    let targets = try names.isEmpty ? context.package.targets : context.package.targets(named: names)
    let models = targets.flatMap { Models.paths(in: $0.directoryURL) }
    if models.isEmpty { Diagnostics.error("The targets contain no .xcdatamodeld or .xcdatamodel.") }
    let tool = try context.tool(named: "HoldfastGenerate")
    for model in models {
      let folder = model.deletingPathExtension()
      let process = Process()
      process.executableURL = tool.url
      process.arguments = [model.path, "--output", folder.path] + options
      try process.run()
      process.waitUntilExit()
      if process.terminationStatus == 2 {
        Diagnostics.error("The classes in \(folder.path) are outdated. Run `swift package generate-classes`.")
      } else if process.terminationStatus != 0 {
        Diagnostics.error("The classes of \(model.path) couldn't be generated.")
      }
    }
  }
}

/// The models in a folder.
enum Models {
  static func paths(in folder: URL) -> [URL] {
    let entries = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: [.isDirectoryKey])) ?? []
    // Hidden folders contain builds and checkouts.
    let visible = entries.filter { !$0.lastPathComponent.hasPrefix(".") }
    return visible.sorted { $0.path < $1.path }.flatMap { entry -> [URL] in
      if ["xcdatamodeld", "xcdatamodel"].contains(entry.pathExtension) { return [entry] }
      let isFolder = (try? entry.resourceValues(forKeys: [.isDirectoryKey]))?.isDirectory == true
      return isFolder ? paths(in: entry) : []
    }
  }
}
