@main struct Millrace { static func main() { print("millrace") } }
